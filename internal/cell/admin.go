package cell

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

// AdminRequest is one administrative act. Which members count depends on Op.
type AdminRequest struct {
	Op      string `json:"op"`                // one of the Op constants
	Tenant  string `json:"tenant,omitempty"`  // name or id
	Cluster string `json:"cluster,omitempty"` // slug
	Plan    string `json:"plan,omitempty"`
	Key     string `json:"key,omitempty"` // id

	Limits map[string]json.RawMessage `json:"limits,omitempty"` // number, or null for unlimited
	Unset  []string                   `json:"unset,omitempty"`  // limits that go back to the plan's

	Scopes    []string   `json:"scopes,omitempty"`
	Env       string     `json:"env,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`

	Month string `json:"month,omitempty"` // "2026-10"; empty: this month
	By    string `json:"by,omitempty"`    // minute, hour, day or month; empty: month
}

// The acts.
const (
	OpTenantAdd     = "tenant.add"
	OpTenantList    = "tenant.list"
	OpTenantSuspend = "tenant.suspend"
	OpTenantResume  = "tenant.resume"
	OpClusterAdd    = "cluster.add"
	OpClusterList   = "cluster.list"
	OpClusterLimit  = "cluster.set-limit"
	OpClusterPlan   = "cluster.set-plan"
	OpKeyAdd        = "key.add"
	OpKeyList       = "key.list"
	OpKeyRevoke     = "key.revoke"
	OpUsage         = "usage"
)

// AdminResponse is what an act shows: the rows it lists or has changed.
type AdminResponse struct {
	Tenants  []TenantInfo  `json:"tenants,omitempty"`
	Clusters []ClusterInfo `json:"clusters,omitempty"`
	Keys     []KeyInfo     `json:"keys,omitempty"`
	Usage    []UsageInfo   `json:"usage,omitempty"`
	// KeyText is a new key, which nothing shows again.
	KeyText string `json:"key_text,omitempty"`
}

// TenantInfo is a paying tenant.
type TenantInfo struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Status   string   `json:"status"`
	Clusters []string `json:"clusters"`
}

// ClusterInfo is a cluster. Status is the worse of its own and its tenant's.
type ClusterInfo struct {
	ID        string                     `json:"id"`
	Slug      string                     `json:"slug"`
	Tenant    string                     `json:"tenant"`
	Plan      string                     `json:"plan"`
	Status    string                     `json:"status"`
	Overrides map[string]json.RawMessage `json:"limit_overrides"`
	CreatedAt time.Time                  `json:"created_at"`
}

// KeyInfo is a key without its text.
type KeyInfo struct {
	ID        string     `json:"id"`
	Cluster   string     `json:"cluster"`
	Scopes    []string   `json:"scopes"`
	State     string     `json:"state"` // active, revoked or expired
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// UsageInfo is metering of one cluster and class from Start on, for as long as
// was asked for.
type UsageInfo struct {
	Start    time.Time `json:"start"`
	Cluster  string    `json:"cluster"` // slug
	Class    string    `json:"op_class"`
	Msgs     int64     `json:"msgs"`
	Reqs     int64     `json:"reqs"`
	BytesIn  int64     `json:"bytes_in"`
	BytesOut int64     `json:"bytes_out"`
}

// Admin does administrative acts on a data folder that this process has.
type Admin struct {
	control *control.Store
	clock   func() time.Time
	usage   usageFiles
	open    func() []proxy.UsageRow // metering rows not written down yet; may be nil
	changed func()                  // after a change of limits; may be nil
}

// Admin administrates a running cell.
func (c *Cell) Admin() *Admin {
	return &Admin{control: c.control, clock: c.cfg.Clock, usage: c.usage, open: c.proxy.OpenUsage, changed: c.proxy.Reconcile}
}

// Do does one act. Its errors are for people.
func (a *Admin) Do(r AdminRequest) (AdminResponse, error) {
	switch r.Op {
	case OpTenantAdd, OpTenantList, OpTenantSuspend, OpTenantResume:
		return a.doTenant(r)
	case OpClusterAdd, OpClusterList, OpClusterLimit, OpClusterPlan:
		return a.doCluster(r)
	case OpKeyAdd, OpKeyList, OpKeyRevoke:
		return a.doKey(r)
	case OpUsage:
		return a.showUsage(r)
	default:
		return AdminResponse{}, fmt.Errorf("%w: no act is called %q", control.ErrInvalid, r.Op)
	}
}

func (a *Admin) doTenant(r AdminRequest) (AdminResponse, error) {
	switch r.Op {
	case OpTenantAdd:
		if _, err := a.tenant(r.Tenant); err == nil {
			return AdminResponse{}, fmt.Errorf("%w: there is a tenant called %q", control.ErrExists, r.Tenant)
		}
		t, err := a.control.CreateTenant(r.Tenant)
		if err != nil {
			return AdminResponse{}, err
		}
		return AdminResponse{Tenants: a.tenants(&t.ID)}, nil
	case OpTenantList:
		return AdminResponse{Tenants: a.tenants(nil)}, nil
	}
	t, err := a.tenant(r.Tenant)
	if err != nil {
		return AdminResponse{}, err
	}
	status := control.Suspended
	if r.Op == OpTenantResume {
		status = control.Active
	}
	if err := a.control.SetTenantStatus(t.ID, status); err != nil {
		return AdminResponse{}, err
	}
	return AdminResponse{Tenants: a.tenants(&t.ID)}, nil
}

func (a *Admin) doCluster(r AdminRequest) (AdminResponse, error) {
	if r.Op == OpClusterList {
		return AdminResponse{Clusters: a.clusters("")}, nil
	}
	var err error
	switch r.Op {
	case OpClusterAdd:
		err = a.addCluster(r)
	case OpClusterLimit:
		err = a.setLimits(r)
	default:
		if err = a.knownCluster(r.Cluster); err == nil {
			err = a.control.SetPlan(r.Cluster, r.Plan)
		}
	}
	if err != nil {
		return AdminResponse{}, err
	}
	if a.changed != nil {
		a.changed()
	}
	return AdminResponse{Clusters: a.clusters(r.Cluster)}, nil
}

func (a *Admin) addCluster(r AdminRequest) error {
	n := control.NewCluster{Slug: r.Cluster, Plan: r.Plan}
	if r.Tenant != "" {
		t, err := a.tenant(r.Tenant)
		if err != nil {
			return err
		}
		n.TenantID = t.ID
	}
	_, err := a.control.CreateCluster(n)
	return err
}

func (a *Admin) setLimits(r AdminRequest) error {
	if err := a.knownCluster(r.Cluster); err != nil {
		return err
	}
	columns := make(map[string]json.RawMessage, len(r.Limits)+len(r.Unset))
	for _, name := range r.Unset {
		columns[name] = nil
	}
	for name, value := range r.Limits {
		if value == nil {
			value = json.RawMessage("null")
		}
		columns[name] = value
	}
	return a.control.EditOverrides(r.Cluster, columns)
}

func (a *Admin) doKey(r AdminRequest) (AdminResponse, error) {
	switch r.Op {
	case OpKeyAdd:
		return a.addKey(r)
	case OpKeyList:
		if r.Cluster != "" {
			if err := a.knownCluster(r.Cluster); err != nil {
				return AdminResponse{}, err
			}
		}
		return AdminResponse{Keys: a.keys(func(k KeyInfo) bool { return r.Cluster == "" || k.Cluster == r.Cluster })}, nil
	}
	id, err := control.ParseUUID(r.Key)
	if err == nil {
		err = a.control.RevokeKey(id)
	}
	if err != nil {
		return AdminResponse{}, fmt.Errorf("%w: no key has the id %q (a key's id is in the list of keys; its text is no id)", control.ErrNotFound, shortID(r.Key))
	}
	return AdminResponse{Keys: a.keys(func(k KeyInfo) bool { return k.ID == id.String() })}, nil
}

// shortID shows what was given as an id, unless it looks like a key.
func shortID(text string) string {
	if strings.HasPrefix(text, control.KeyPrefix) {
		return control.KeyPrefix + "…"
	}
	return text
}

func (a *Admin) addKey(r AdminRequest) (AdminResponse, error) {
	if err := a.knownCluster(r.Cluster); err != nil {
		return AdminResponse{}, err
	}
	scopes, err := control.ParseScopes(r.Scopes...)
	if err != nil {
		return AdminResponse{}, fmt.Errorf("%w: %w", control.ErrInvalid, err)
	}
	n := control.NewKey{Cluster: r.Cluster, Env: r.Env, Scopes: scopes}
	if r.ExpiresAt != nil {
		if !r.ExpiresAt.After(a.clock()) {
			return AdminResponse{}, fmt.Errorf("%w: %s has passed", control.ErrInvalid, r.ExpiresAt.UTC().Format(time.RFC3339))
		}
		n.ExpiresAt = *r.ExpiresAt
	}
	text, key, err := a.control.CreateKey(n)
	if err != nil {
		return AdminResponse{}, err
	}
	return AdminResponse{KeyText: text, Keys: a.keys(func(k KeyInfo) bool { return k.ID == key.ID.String() })}, nil
}

// tenant finds a paying tenant by id or by name.
func (a *Admin) tenant(ref string) (control.Tenant, error) {
	all := a.control.Tenants()
	var found []control.Tenant
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
		if t.ID.String() == ref {
			return t, nil
		}
		if t.Name == ref {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return control.Tenant{}, fmt.Errorf("%w: no tenant is called %q (%s)", control.ErrNotFound, ref, known(names))
	default:
		return control.Tenant{}, fmt.Errorf("%w: %d tenants are called %q: name one by its id", control.ErrInvalid, len(found), ref)
	}
}

// knownCluster says what clusters there are where one is not.
func (a *Admin) knownCluster(slug string) error {
	if _, ok := a.control.BySlug(slug); ok {
		return nil
	}
	all := a.control.Clusters()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Slug
	}
	return fmt.Errorf("%w: no cluster is called %q (%s)", control.ErrNotFound, slug, known(names))
}

func known(names []string) string {
	if len(names) == 0 {
		return "there is none yet"
	}
	return "there are: " + strings.Join(names, ", ")
}

// tenants lists all tenants, or one.
func (a *Admin) tenants(only *control.UUID) []TenantInfo {
	clusters := a.control.Clusters()
	rows := []TenantInfo{}
	for _, t := range a.control.Tenants() {
		if only != nil && *only != t.ID {
			continue
		}
		row := TenantInfo{ID: t.ID.String(), Name: t.Name, Status: string(t.Status), Clusters: []string{}}
		for i := range clusters {
			if clusters[i].TenantID == t.ID {
				row.Clusters = append(row.Clusters, clusters[i].Slug)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// clusters lists all clusters, or one.
func (a *Admin) clusters(only string) []ClusterInfo {
	names := map[control.UUID]string{}
	for _, t := range a.control.Tenants() {
		names[t.ID] = t.Name
	}
	rows := []ClusterInfo{}
	for _, c := range a.control.Clusters() {
		v, ok := a.control.BySlug(c.Slug)
		if !ok || only != "" && only != c.Slug {
			continue
		}
		rows = append(rows, ClusterInfo{
			ID: v.ID, Slug: c.Slug, Tenant: names[c.TenantID], Plan: c.Plan, Status: string(v.Status),
			Overrides: c.Overrides, CreatedAt: c.CreatedAt,
		})
	}
	return rows
}

// keys lists keys of all clusters.
func (a *Admin) keys(want func(KeyInfo) bool) []KeyInfo {
	now := a.clock()
	rows := []KeyInfo{}
	for _, c := range a.control.Clusters() {
		for _, k := range a.control.Keys(c.Slug) {
			row := KeyInfo{
				ID: k.ID.String(), Cluster: c.Slug, Scopes: k.Scopes.Names(), State: "active",
				CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
			}
			switch {
			case k.Revoked:
				row.State = "revoked"
			case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
				row.State = "expired"
			}
			if want(row) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// showUsage adds metering rows up.
func (a *Admin) showUsage(r AdminRequest) (AdminResponse, error) {
	if r.Cluster != "" {
		if err := a.knownCluster(r.Cluster); err != nil {
			return AdminResponse{}, err
		}
	}
	month := cmp.Or(r.Month, a.clock().UTC().Format(usageMonth))
	start, err := time.Parse(usageMonth, month)
	if err != nil {
		return AdminResponse{}, fmt.Errorf("%w: month %q is not of the form 2026-10", control.ErrInvalid, month)
	}
	step, ok := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "": 0, "month": 0}[r.By]
	if !ok {
		return AdminResponse{}, fmt.Errorf("%w: usage by %q (minute, hour, day or month)", control.ErrInvalid, r.By)
	}
	slugs := map[string]string{}
	for _, c := range a.control.Clusters() {
		slugs[c.ID.String()] = c.Slug
	}
	var rows []proxy.UsageRow
	add := func(row *proxy.UsageRow) {
		if slug := slugs[row.Cluster]; r.Cluster != "" && slug != r.Cluster || row.Minute.UTC().Format(usageMonth) != month {
			return
		}
		kept := *row
		if step == 0 {
			kept.Minute = start
		}
		rows = append(rows, kept)
	}
	if err := a.usage.each(month, add); err != nil {
		return AdminResponse{}, err
	}
	if a.open != nil {
		unwritten := a.open()
		for i := range unwritten {
			add(&unwritten[i])
		}
	}
	return AdminResponse{Usage: usageInfos(sumRows(rows, step), slugs)}, nil
}

func usageInfos(rows []proxy.UsageRow, slugs map[string]string) []UsageInfo {
	infos := make([]UsageInfo, len(rows))
	for i, row := range rows {
		infos[i] = UsageInfo{
			Start: row.Minute, Cluster: cmp.Or(slugs[row.Cluster], row.Cluster), Class: string(row.Class),
			Msgs: row.Msgs, Reqs: row.Reqs, BytesIn: row.BytesIn, BytesOut: row.BytesOut,
		}
	}
	slices.SortStableFunc(infos, func(x, y UsageInfo) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Class, y.Class))
	})
	return infos
}

// adminStatus is the HTTP status that stands for an act's error.
func adminStatus(err error) int {
	switch {
	case errors.Is(err, control.ErrNotFound):
		return 404
	case errors.Is(err, control.ErrExists):
		return 409
	case errors.Is(err, control.ErrInvalid):
		return 400
	default:
		return 500
	}
}
