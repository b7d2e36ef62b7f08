package gokit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Grouper is a client that has consumer groups.
type Grouper interface {
	// Join makes a member of a group that reads a topic, from its start where
	// nothing is committed. It has joined once it was polled.
	Join(ctx context.Context, token, group, topic string, how Membership) (Member, error)
}

// Membership is how a member takes part.
type Membership struct {
	Instance    string // static member id; empty: none
	Cooperative bool   // cooperative-sticky; else the client's eager range assignor
}

// Member is one member of a group. Poll is called by one goroutine, over and
// over; the others while none polls, Held at any time.
type Member interface {
	// Poll returns what has come within about 100 ms, a few records at most.
	// Nothing is committed.
	Poll(ctx context.Context) ([]Position, error)
	// Held is what the member holds now, and how many times it was told.
	Held() (partitions []int32, told int)
	// Commit commits what was polled.
	Commit(ctx context.Context) error
	// Close leaves the group; a static member's place is kept.
	Close() error
}

// Position is a record's place.
type Position struct {
	Partition int32
	Offset    int64
}

const (
	sessionTimeout = 6 * time.Second // of every member; the least that is allowed
	groupWait      = 45 * time.Second
	memberVariable = "COMPAT_MEMBER" // a process that is to be a member and be killed
)

// SessionTimeout is what members ask for.
func SessionTimeout() time.Duration { return sessionTimeout }

func groupTopic() string { return os.Getenv("COMPAT_GROUP_TOPIC") }

func (b *block) groupSteps() []step {
	return []step{
		{"group-resume", b.groupCheck(b.resume)},
		{"group-3", b.groupCheck(b.share(3, false))},
		{"group-10", b.groupCheck(b.share(10, false))},
		{"group-cooperative", b.groupCheck(b.share(3, true))},
		{"group-killed", b.groupCheck(b.killed)},
		{"group-static", b.groupCheck(b.static)},
	}
}

// groupCheck names the group of a check.
func (b *block) groupCheck(do func(ctx context.Context, g Grouper, check, group string) error) func(context.Context, string) error {
	return func(_ context.Context, check string) error {
		g, ok := b.Driver.(Grouper)
		if !ok {
			return Skip("its folder does not drive groups")
		}
		ctx, cancel := context.WithTimeout(context.Background(), groupWait)
		defer cancel()
		return do(ctx, g, check, b.group(check))
	}
}

// resume reads half with one member and the rest with another.
func (b *block) resume(ctx context.Context, g Grouper, check, group string) error {
	perPartition, err := strconv.Atoi(os.Getenv("COMPAT_GROUP_COUNT"))
	if err != nil {
		return err
	}
	left := 4 * perPartition
	for _, stop := range []int{left / 2, 0} {
		m, err := g.Join(ctx, token("ACME"), group, groupTopic(), Membership{})
		if err != nil {
			return err
		}
		for left > stop {
			got, err := m.Poll(ctx)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return errors.Join(err, m.Close())
			}
			left -= len(got)
			for _, p := range got {
				fmt.Fprintf(b.out, "got %s %d %d\n", check, p.Partition, p.Offset)
			}
		}
		if err := errors.Join(m.Commit(ctx), m.Close()); err != nil {
			return err
		}
	}
	return nil
}

// share lets members join and shows what each holds. Cooperative ones join when
// those before have settled, so that partitions change hands.
func (b *block) share(n int, cooperative bool) func(context.Context, Grouper, string, string) error {
	return func(ctx context.Context, g Grouper, check, group string) error {
		t := &team{}
		defer t.close()
		for range n {
			if err := t.join(ctx, g, group, Membership{Cooperative: cooperative}); err != nil {
				return err
			}
			if !cooperative {
				continue
			}
			if err := t.settle(ctx); err != nil {
				return err
			}
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
		t.show(b, check)
		return nil
	}
}

// killed has a member in a process of its own killed.
func (b *block) killed(ctx context.Context, g Grouper, check, group string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	victim := exec.CommandContext(ctx, self)
	victim.Env = append(os.Environ(), memberVariable+"="+group+" "+b.Version)
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		return err
	}
	if err := victim.Start(); err != nil {
		return err
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	t := &team{}
	defer t.close()
	if err := t.join(ctx, g, group, Membership{}); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // how many partitions the victim holds
		if held, _ := t.members[0].Held(); lines.Text() != "0" && len(held) > 0 && len(held) < 4 {
			break
		}
	}
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	t.show(b, check)
	return nil
}

// beMember is the process that is to be killed.
func beMember(clients []Client) {
	group, version, _ := strings.Cut(os.Getenv(memberVariable), " ")
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Version == version })
	g := clients[max(i, 0)].Driver.(Grouper)
	ctx, cancel := context.WithTimeout(context.Background(), groupWait)
	defer cancel()
	m, err := g.Join(ctx, token("ACME"), group, groupTopic(), Membership{})
	for err == nil && ctx.Err() == nil {
		_, err = m.Poll(ctx)
		held, _ := m.Held()
		fmt.Println(len(held))
	}
	fmt.Fprintln(os.Stderr, "member:", err)
	os.Exit(1)
}

// static restarts a static member while another one stays.
func (b *block) static(ctx context.Context, g Grouper, check, group string) error {
	t := &team{}
	defer t.close()
	for _, id := range []string{"stays", "restarts"} {
		if err := t.join(ctx, g, group, Membership{Instance: id}); err != nil {
			return err
		}
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	_, before := t.members[0].Held()
	if err := t.leave(1); err != nil {
		return err
	}
	if err := t.join(ctx, g, group, Membership{Instance: "restarts"}); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	_, after := t.members[0].Held()
	fmt.Fprintf(b.out, "rebalances %s %d %d\n", check, before, after)
	t.show(b, check)
	return nil
}

// team are members that poll in goroutines of their own.
type team struct {
	members []Member
	stops   []func() error
	mu      sync.Mutex // guards err
	err     error
}

func (t *team) join(ctx context.Context, g Grouper, group string, how Membership) error {
	m, err := g.Join(ctx, token("ACME"), group, groupTopic(), how)
	if err != nil {
		return err
	}
	polls, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for polls.Err() == nil {
			if _, err := m.Poll(polls); err != nil && polls.Err() == nil {
				t.mu.Lock()
				t.err = errors.Join(t.err, err)
				t.mu.Unlock()
				return
			}
		}
	}()
	t.members = append(t.members, m)
	t.stops = append(t.stops, func() error {
		cancel()
		<-done
		return m.Close()
	})
	return nil
}

func (t *team) leave(i int) error {
	err := t.stops[i]()
	t.members, t.stops = slices.Delete(t.members, i, i+1), slices.Delete(t.stops, i, i+1)
	return err
}

func (t *team) close() {
	var wg sync.WaitGroup
	for _, stop := range t.stops {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_ = stop()
		}()
	}
	wg.Wait()
}

// settle waits until every member was told what it holds, each partition is held
// by one of them, and none holds nothing that need not.
func (t *team) settle(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var all []int32
		told, idle := true, 0
		for _, m := range t.members {
			held, n := m.Held()
			all, told = append(all, held...), told && n > 0
			if len(held) == 0 {
				idle++
			}
		}
		slices.Sort(all)
		if told && slices.Equal(all, []int32{0, 1, 2, 3}) && idle == max(len(t.members)-4, 0) {
			return nil
		}
		t.mu.Lock()
		err := t.err
		t.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the group did not settle: %v are held", all)
		}
	}
}

func (t *team) show(b *block, check string) {
	for i, m := range t.members {
		held, _ := m.Held()
		fmt.Fprintf(b.out, "member %s %d %s\n", check, i, heldForm(held))
	}
}
