package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

// Deed is one thing that a request has changed for good, for the audit log.
type Deed struct {
	Did        Act
	API        string // its name
	Topic      string
	Group      string
	Configs    []string // that were set or unset
	Partitions int      // PartitionsCreated: the width now; OffsetsDeleted: how many
	Unknown    bool     // the cell gave no answer: it may have happened
	Code       string   // then: what the client was told
}

// Act is what a Deed did.
type Act uint8

// The acts.
const (
	TopicCreated Act = iota
	TopicDeleted
	PartitionsCreated
	ConfigAltered
	GroupDeleted
	OffsetsDeleted
)

// deeds tells what a request has changed, as its answer says.
type deeds struct {
	tell func(Deed)
	api  string
}

// judged tells a deed of which the answer has a code: it was done, or that is not
// known. What was refused did not happen.
func (d deeds) judged(deed Deed, code int16) {
	switch code {
	case 0:
	case kerr.UnknownServerError.Code, kerr.RequestTimedOut.Code, kerr.CoordinatorNotAvailable.Code:
		deed.Unknown, deed.Code = true, errorName(code)
	default:
		return
	}
	deed.API = d.api
	d.tell(deed)
}

// of looks at an answer. Those of other APIs change nothing but records and
// offsets, which are the tenant's daily work.
func (d deeds) of(req kmsg.Request, resp kmsg.Response) {
	switch resp := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		d.created(req.(*kmsg.CreateTopicsRequest), resp)
	case *kmsg.DeleteTopicsResponse:
		for i := range resp.Topics {
			d.judged(Deed{Did: TopicDeleted, Topic: textOf(resp.Topics[i].Topic)}, resp.Topics[i].ErrorCode)
		}
	case *kmsg.CreatePartitionsResponse:
		d.widened(req.(*kmsg.CreatePartitionsRequest), resp)
	case *kmsg.AlterConfigsResponse:
		d.altered(req.(*kmsg.AlterConfigsRequest), resp)
	case *kmsg.IncrementalAlterConfigsResponse:
		d.edited(req.(*kmsg.IncrementalAlterConfigsRequest), resp)
	case *kmsg.DeleteGroupsResponse:
		for i := range resp.Groups {
			d.judged(Deed{Did: GroupDeleted, Group: resp.Groups[i].Group}, resp.Groups[i].ErrorCode)
		}
	case *kmsg.OffsetDeleteResponse:
		d.forgotten(req.(*kmsg.OffsetDeleteRequest), resp)
	}
}

func (d deeds) created(req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	if req.ValidateOnly {
		return
	}
	for i := range resp.Topics {
		d.judged(Deed{Did: TopicCreated, Topic: resp.Topics[i].Topic}, resp.Topics[i].ErrorCode)
	}
}

func (d deeds) widened(req *kmsg.CreatePartitionsRequest, resp *kmsg.CreatePartitionsResponse) {
	if req.ValidateOnly {
		return
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		d.judged(Deed{Did: PartitionsCreated, Topic: t.Topic, Partitions: int(req.Topics[i].Count)}, t.ErrorCode)
	}
}

func (d deeds) altered(req *kmsg.AlterConfigsRequest, resp *kmsg.AlterConfigsResponse) {
	if req.ValidateOnly {
		return
	}
	for i := range resp.Resources {
		deed := Deed{Did: ConfigAltered, Topic: resp.Resources[i].ResourceName}
		for _, c := range req.Resources[i].Configs {
			deed.Configs = append(deed.Configs, c.Name)
		}
		d.judged(deed, resp.Resources[i].ErrorCode)
	}
}

func (d deeds) edited(req *kmsg.IncrementalAlterConfigsRequest, resp *kmsg.IncrementalAlterConfigsResponse) {
	if req.ValidateOnly {
		return
	}
	for i := range resp.Resources {
		deed := Deed{Did: ConfigAltered, Topic: resp.Resources[i].ResourceName}
		for _, c := range req.Resources[i].Configs {
			deed.Configs = append(deed.Configs, c.Name)
		}
		d.judged(deed, resp.Resources[i].ErrorCode)
	}
}

func (d deeds) forgotten(req *kmsg.OffsetDeleteRequest, resp *kmsg.OffsetDeleteResponse) {
	if resp.ErrorCode != 0 { // nothing is said of topics
		d.judged(Deed{Did: OffsetsDeleted, Group: req.Group}, resp.ErrorCode)
		return
	}
	for i := range resp.Topics {
		n := 0
		for _, p := range resp.Topics[i].Partitions {
			if p.ErrorCode == 0 {
				n++
			}
		}
		if n > 0 {
			d.judged(Deed{Did: OffsetsDeleted, Group: req.Group, Topic: resp.Topics[i].Topic, Partitions: n}, 0)
		}
	}
}

// madeBy tells of topics that came to be by being named.
func (c *Conn) madeBy(api string, resolved []catalog.Resolved) {
	if c.Deed == nil {
		return
	}
	for i := range resolved {
		if resolved[i].Made {
			c.Deed(Deed{Did: TopicCreated, API: api, Topic: resolved[i].Name})
		}
	}
}
