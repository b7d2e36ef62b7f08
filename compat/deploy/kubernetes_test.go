package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What follows are the parts of Kubernetes' types that the manifests use, by the
// names of its API: a field that is not here is a mistake, or is to be added with a
// look at the reference.
type manifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   meta              `yaml:"metadata"`
	Data       map[string]string `yaml:"data"`
	StringData map[string]string `yaml:"stringData"`
	Spec       spec              `yaml:"spec"`
}

type meta struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// spec is of every kind there is: Deployment, StatefulSet, Service,
// PodDisruptionBudget.
type spec struct {
	Replicas    int    `yaml:"replicas"`
	ServiceName string `yaml:"serviceName"`
	Ordinals    struct {
		Start int `yaml:"start"`
	} `yaml:"ordinals"`
	PodManagementPolicy string `yaml:"podManagementPolicy"`
	MinReadySeconds     int    `yaml:"minReadySeconds"`
	Strategy            struct {
		Type string `yaml:"type"`
	} `yaml:"strategy"`
	UpdateStrategy struct {
		Type string `yaml:"type"`
	} `yaml:"updateStrategy"`
	Selector any `yaml:"selector"` // a Service's is flat
	Template struct {
		Metadata meta `yaml:"metadata"`
		Spec     pod  `yaml:"spec"`
	} `yaml:"template"`

	Type                     string `yaml:"type"`
	ClusterIP                string `yaml:"clusterIP"`
	ExternalTrafficPolicy    string `yaml:"externalTrafficPolicy"`
	PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
	Ports                    []struct {
		Name       string `yaml:"name"`
		Port       int    `yaml:"port"`
		TargetPort string `yaml:"targetPort"`
	} `yaml:"ports"`
	MaxUnavailable int `yaml:"maxUnavailable"`
}

type pod struct {
	AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot   bool              `yaml:"runAsNonRoot"`
		RunAsUser      int               `yaml:"runAsUser"`
		RunAsGroup     int               `yaml:"runAsGroup"`
		FSGroup        int               `yaml:"fsGroup"`
		SeccompProfile map[string]string `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	TopologySpreadConstraints []struct {
		MaxSkew           int      `yaml:"maxSkew"`
		TopologyKey       string   `yaml:"topologyKey"`
		WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
		LabelSelector     selector `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	Containers []container `yaml:"containers"`
	Volumes    []struct {
		Name   string `yaml:"name"`
		Secret struct {
			SecretName string `yaml:"secretName"`
		} `yaml:"secret"`
	} `yaml:"volumes"`
}

type container struct {
	Name    string   `yaml:"name"`
	Image   string   `yaml:"image"`
	Args    []string `yaml:"args"`
	EnvFrom []struct {
		ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
		SecretRef    struct{ Name string } `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Env []struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	} `yaml:"env"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	} `yaml:"ports"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	Lifecycle      struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

// kubernetes checks one file and returns its workload and all that its container
// is told, by name.
func kubernetes(t *testing.T, path string, later bool) (manifest, map[string]string) {
	t.Helper()
	var workload manifest
	kinds := map[string]string{
		"ConfigMap": "v1", "Secret": "v1", "Service": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "PodDisruptionBudget": "policy/v1",
	}
	told := map[string]string{}
	docs := documents[manifest](t, path)
	for _, m := range docs {
		if kinds[m.Kind] != m.APIVersion || m.Metadata.Name == "" || m.Metadata.Labels["app.kubernetes.io/name"] != "queen-edge" {
			t.Errorf("%s: %s %q of %s", path, m.Kind, m.Metadata.Name, m.APIVersion)
		}
		maps.Copy(told, m.Data)
		maps.Copy(told, m.StringData)
		if m.Spec.Template.Metadata.Labels != nil {
			workload = m
		}
	}
	c := workload.Spec.Template.Spec.Containers[0]
	for _, e := range c.Env {
		told[e.Name] = e.Value + e.ValueFrom.FieldRef.FieldPath
	}
	wantSettings(t, path, slices.Collect(maps.Keys(told)), later)
	wantGuarded(t, path, workload.Spec.Template.Spec)
	wantPorts(t, path, docs, c, told)
	for _, probe := range []probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe.HTTPGet.Port != "admin" || probe.PeriodSeconds < 1 || probe.FailureThreshold < 1 {
			t.Errorf("%s: probe %+v", path, probe)
		}
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/livez" {
		t.Errorf("%s: probes %+v, %+v", path, c.ReadinessProbe, c.LivenessProbe)
	}
	grace := workload.Spec.Template.Spec.TerminationGracePeriodSeconds
	if need := c.Lifecycle.PreStop.Sleep.Seconds + seconds(t, told["QUEEN_KAFKA_DRAIN_GRACE_MS"]); grace <= need {
		t.Errorf("%s: killed after %d s, a drain may take %d", path, grace, need)
	}
	return workload, told
}

// wantGuarded: what a container may not do.
func wantGuarded(t *testing.T, path string, p pod) {
	t.Helper()
	c := p.Containers[0]
	no := func(b *bool) bool { return b != nil && !*b }
	if !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser == 0 || p.SecurityContext.SeccompProfile["type"] != "RuntimeDefault" ||
		!no(p.AutomountServiceAccountToken) || !no(c.SecurityContext.AllowPrivilegeEscalation) || !c.SecurityContext.ReadOnlyRootFilesystem ||
		!slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) || c.Resources.Limits["memory"] == "" {
		t.Errorf("%s: the container may do too much", path)
	}
	for _, v := range p.Volumes {
		if !slices.ContainsFunc(c.VolumeMounts, func(m struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		},
		) bool {
			return m.Name == v.Name && m.ReadOnly
		}) {
			t.Errorf("%s: volume %s is not mounted", path, v.Name)
		}
	}
}

// wantPorts: services, container and settings mean the same ports.
func wantPorts(t *testing.T, path string, docs []manifest, c container, told map[string]string) {
	t.Helper()
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if told["QUEEN_KAFKA_ADDR"] != fmt.Sprintf("0.0.0.0:%d", ports["kafka"]) || told["QUEEN_KAFKA_ADMIN_ADDR"] != fmt.Sprintf("0.0.0.0:%d", ports["admin"]) {
		t.Errorf("%s: ports %v, settings %v", path, ports, told)
	}
	for _, m := range docs {
		for _, p := range m.Spec.Ports {
			if ports[p.TargetPort] == 0 {
				t.Errorf("%s: service %s leads to %q", path, m.Metadata.Name, p.TargetPort)
			}
			if p.TargetPort == "kafka" && !strings.HasSuffix(told["QUEEN_KAFKA_ADVERTISED_ADDR"], fmt.Sprintf(":%d", p.Port)) {
				t.Errorf("%s: service %s listens at %d, advertised is %s", path, m.Metadata.Name, p.Port, told["QUEEN_KAFKA_ADVERTISED_ADDR"])
			}
			if p.TargetPort == "admin" && m.Spec.ClusterIP != "None" {
				t.Errorf("%s: the side listener is behind service %s", path, m.Metadata.Name)
			}
		}
	}
}

func TestKubernetesGateway(t *testing.T) {
	path := dir + "kubernetes/gateway.yaml"
	m, told := kubernetes(t, path, false)
	if m.Kind != "Deployment" || m.Spec.Replicas != 1 || m.Spec.Strategy.Type != "Recreate" {
		t.Errorf("%s of %d by %s: two gateways of one address do not know of each other", m.Kind, m.Spec.Replicas, m.Spec.Strategy.Type)
	}
	legal(t, path, told)
}

func TestKubernetesPerNode(t *testing.T) {
	path := dir + "kubernetes/per-node.yaml"
	m, told := kubernetes(t, path, true)
	if m.Kind != "StatefulSet" || m.Spec.Replicas < 2 || m.Spec.Ordinals.Start != 1 {
		t.Errorf("%s of %d from %d", m.Kind, m.Spec.Replicas, m.Spec.Ordinals.Start)
	}
	if told["QUEEN_KAFKA_NODE_ID"] != "metadata.labels['apps.kubernetes.io/pod-index']" ||
		told["QUEEN_KAFKA_ADVERTISED_ADDR"] != "$(POD_NAME)."+m.Spec.ServiceName+".$(POD_NAMESPACE).svc.cluster.local:9092" {
		t.Errorf("a node is %s at %s", told["QUEEN_KAFKA_NODE_ID"], told["QUEEN_KAFKA_ADVERTISED_ADDR"])
	}
	if slices.ContainsFunc(m.Spec.Template.Spec.Containers[0].Env, func(e struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	},
	) bool {
		return strings.Contains(e.Value, "$(") && e.Name != "QUEEN_KAFKA_ADVERTISED_ADDR"
	}) {
		t.Error("another variable is made of variables")
	}
}
