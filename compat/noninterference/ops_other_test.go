package noninterference

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// otherOps are about no name of the tenant's.
func otherOps() []op {
	return []op{
		{"login", func(c *client, _, v int) { c.leave(); c.login(v) }},
		{"api-versions", (*client).apiVersions},
		{"describe-cluster", (*client).describeCluster},
		{"describe-acls", (*client).describeACLs},
		{"create-acls", (*client).createACLs},
		{"delete-acls", (*client).deleteACLs},
		{"list-config-resources", (*client).listConfigResources},
	}
}

func (c *client) apiVersions(_, v int) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "app", "1"
	c.send(req, v)
}

func (c *client) describeCluster(_, v int) {
	req := kmsg.NewPtrDescribeClusterRequest()
	c.send(req, v)
}

func (c *client) describeACLs(_, v int) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	req.Operation, req.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	c.send(req, v)
}

func (c *client) createACLs(x, v int) {
	req := kmsg.NewPtrCreateACLsRequest()
	acl := kmsg.NewCreateACLsRequestCreation()
	acl.ResourceType, acl.ResourceName, acl.Principal, acl.Host = kmsg.ACLResourceTypeTopic, topicName(x), "User:app", "*"
	acl.Operation, acl.PermissionType = kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	req.Creations = append(req.Creations, acl)
	c.send(req, v)
}

func (c *client) deleteACLs(_, v int) {
	req := kmsg.NewPtrDeleteACLsRequest()
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	filter.Operation, filter.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	req.Filters = append(req.Filters, filter)
	c.send(req, v)
}

func (c *client) listConfigResources(_, v int) {
	req := kmsg.NewPtrListConfigResourcesRequest()
	c.send(req, v)
}
