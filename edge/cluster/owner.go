package cluster

import (
	"sort"
	"strconv"
	"time"
)

// Member is a node as clients are told of it.
type Member struct {
	ID          int32
	Host        string
	Port        int32
	Incarnation int64 // of the process: tells it from others with its id
}

// View is who is there, at one moment. It never changes.
type View struct {
	Cluster string
	Self    int32
	Members []Member // by id, never empty

	ids      []int32   // of the members
	from, to time.Time // this node coordinates in between; to is exclusive
	always   bool      // it coordinates whatever the time is
}

// Alone is the view of a gateway that is no node of a cluster: it owns
// everything.
func Alone(cluster string, self Member) *View {
	return &View{Cluster: cluster, Self: self.ID, Members: []Member{self}, ids: []int32{self.ID}, always: true}
}

// Controller is the node with the lowest id.
func (v *View) Controller() int32 { return v.Members[0].ID }

// Coordinates reports whether this node may coordinate groups at all.
func (v *View) Coordinates(now time.Time) bool {
	return v.always || !v.to.IsZero() && !now.Before(v.from) && now.Before(v.to)
}

// Owner is the node that coordinates a group. The tenant is no input: all who
// see the same nodes agree, whatever they know of tenants.
func (v *View) Owner(group string) Member {
	return v.Members[v.highest(seed(domainGroup, group))]
}

// Owns reports whether that is this node.
func (v *View) Owns(group string) bool { return v.Owner(group).ID == v.Self }

// Leaders says who leads the partitions of one topic.
func (v *View) Leaders(topic string) Leaders {
	return Leaders{view: v, topic: seed(domainPartition, topic)}
}

// Leaders are the leaders of one topic's partitions. To lead is advice: every
// node serves every partition.
type Leaders struct {
	view  *View
	topic uint64
}

// Of is the leader of a partition, and the list of its one replica, which all
// partitions share: it must not be changed.
func (l Leaders) Of(partition int32) (leader int32, replicas []int32) {
	i := 0
	if len(l.view.ids) > 1 {
		i = l.view.highest(decimal(mix(l.topic, 0), int64(partition)))
	}
	return l.view.ids[i], l.view.ids[i : i+1 : i+1]
}

// Domains keep the hashes of different things apart. 3 is reserved for
// transactions.
const (
	domainPartition = 0x01
	domainGroup     = 0x02
)

// highest is the place of the member with the highest score; the lowest id wins
// a tie.
func (v *View) highest(item uint64) int {
	best, top := 0, uint64(0)
	for i, id := range v.ids {
		if s := score(item, id); i == 0 || s > top {
			best, top = i, s
		}
	}
	return best
}

// score is finalise(FNV-1a-64(domain, 0, item, 0, node id in decimal)).
func score(item uint64, node int32) uint64 { return finalise(decimal(mix(item, 0), int64(node))) }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func seed(domain byte, item string) uint64 {
	h := mix(mix(fnvOffset, domain), 0)
	for i := range len(item) {
		h = mix(h, item[i])
	}
	return h
}

func mix(h uint64, b byte) uint64 { return (h ^ uint64(b)) * fnvPrime }

func decimal(h uint64, n int64) uint64 {
	var digits [20]byte
	for _, c := range strconv.AppendInt(digits[:0], n, 10) {
		h = mix(h, c)
	}
	return h
}

// finalise is the end of splitmix64: FNV alone spreads its last bytes badly.
func finalise(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// viewOf sorts members, of which there is one for each id.
func viewOf(cluster string, self int32, members []Member) *View {
	sort.Slice(members, func(i, j int) bool { return members[i].ID < members[j].ID })
	v := &View{Cluster: cluster, Self: self, Members: members}
	for _, m := range members {
		v.ids = append(v.ids, m.ID)
	}
	return v
}
