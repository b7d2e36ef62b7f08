package e2e

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/batch"
)

// attack is one hostile connection: how far it gets by the rules, and what it
// sends then.
type attack struct {
	stage stage
	send  []byte
	stay  bool // says no more, and waits to be thrown out
}

type stage uint8

const (
	onTCP stage = iota // no TLS
	onTLS              // not logged in
	loggedIn
)

const (
	// campaignBomb is what each bomb decompresses to: one more than is allowed.
	campaignBomb = 4<<20 + 100
	// framesEach is how many mutated frames a connection sends.
	framesEach = 2
)

// attacks are all attacks of a campaign, shuffled.
func (c *campaign) attacks() []attack {
	frames, others := 200, 3
	if os.Getenv("QE_FULL") == "1" {
		frames, others = 2000, 60
	}
	rng := rand.New(rand.NewPCG(c.seed, 0))
	var all []attack
	for _, row := range api.Table() {
		early := frames
		if row.Phase == api.AfterLogin {
			early = frames / 10 // one look at the key refuses them
		}
		for range frames / framesEach {
			all = append(all, attack{stage: loggedIn, send: mutants(rng, row)})
		}
		for range early / framesEach {
			all = append(all, attack{stage: onTLS, send: mutants(rng, row)})
		}
	}
	bombs := c.bombs()
	for range others {
		all = append(all, bombs...)
		all = append(all, strangers(rng)...)
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// bombs are small things that would be large.
func (c *campaign) bombs() (out []attack) {
	add := func(b []byte) { out = append(out, attack{stage: loggedIn, send: b}) }
	for codec := batch.Gzip; codec <= batch.Zstd; codec++ {
		add(rig.Frame(wireProduce(-1, "campaign", 0, zipped(c.t, codec, campaignBomb)), 1, "bomb"))
		small := slices.Repeat([]string{strings.Repeat("\x00", 1<<10)}, campaignBomb>>10)
		add(rig.Frame(wireProduce(-1, "campaign", 0, compressed(c.t, codec, small...)), 1, "bomb"))
		add(rig.Frame(wireProduce(-1, "campaign", 0, compressed(c.t, codec, small[:1<<10]...)), 1, "large"))
	}
	tags := binary.AppendUvarint([]byte{0}, 500_000) // Metadata 9: null topics… and tags without end
	for i := range 500_000 {
		tags = append(binary.AppendUvarint(tags, uint64(i+9)), 0)
	}
	add(wireFrame(3, 9, 1, nil, []byte{0}, tags[:1<<20]))
	swollen := binary.AppendUvarint([]byte{0, 0, 1, 0, 0, 0, 0, 2, 2, 't'}, 170_001) // partitions of nothing
	add(wireFrame(0, 9, 1, nil, []byte{0}, append(swollen, make([]byte, 1_020_000)...)))
	for _, claim := range []uint32{1 << 20, 1<<31 - 1, 1<<32 - 2} {
		many := binary.BigEndian.AppendUint32(nil, claim)
		add(wireFrame(3, 1, 1, nil, nil, append(many, make([]byte, 4<<10)...)))
		add(wireFrame(2, 1, 1, nil, nil, append([]byte{0, 0, 0, 0}, append(many, make([]byte, 4<<10)...)...)))
	}
	for range 4 { // frames whose bodies never come
		add(binary.BigEndian.AppendUint32(nil, 100<<20))
	}
	return out
}

// strangers are connections that never log in.
func strangers(rng *rand.Rand) (out []attack) {
	garbage := make([]byte, 300)
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	hello := append([]byte{22, 3, 1, 1, 39}, garbage...)
	for _, b := range [][]byte{
		nil,
		{22},
		hello, garbage, []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		rig.Frame(wireSample(18, 3), 1, "plaintext"),
	} {
		out = append(out, attack{stage: onTCP, send: b}, attack{stage: onTCP, send: b, stay: true})
	}
	for _, size := range []uint32{0, 1, 7, 8, 13, 64<<10 + 1, 100<<20 + 1, 1 << 31, 1<<32 - 1} {
		b := binary.BigEndian.AppendUint32(nil, size)
		out = append(out, attack{stage: onTLS, send: b}, attack{stage: loggedIn, send: b})
	}
	slow := rig.Frame(wireSample(18, 3), 1, "slow")
	return append(out,
		attack{stage: onTLS}, attack{stage: onTLS, stay: true},
		attack{stage: onTLS, send: slow[:10], stay: true}, attack{stage: loggedIn, send: slow[:10], stay: true})
}

// mutants are frames of an API with something wrong in each.
func mutants(rng *rand.Rand, row api.Row) (out []byte) {
	for range framesEach {
		version := row.Min + int16(rng.IntN(int(row.Max-row.Min)+1))
		frame := rig.Frame(wireSample(row.Key, version), int32(rng.Uint32()), "mutant")
		out = append(out, mutate(rng, frame)...)
	}
	return out
}

// mutate damages a frame in one to four places. Its length stays true in three
// of four.
func mutate(rng *rand.Rand, frame []byte) []byte {
	for range 1 + rng.IntN(4) {
		at := 4 + rng.IntN(len(frame)-4)
		switch rng.IntN(7) {
		case 0:
			frame[at] ^= 1 << rng.IntN(8)
		case 1:
			frame[at] = byte(rng.Uint32())
		case 2:
			frame = slices.Insert(frame, at, make([]byte, rng.IntN(40))...)
		case 3:
			if at > 12 {
				frame = frame[:at]
			}
		case 4: // a length or a count that lies
			copy(frame[at:], [][]byte{{0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0, 0, 0}, {0, 0x10, 0, 0}}[rng.IntN(4)])
		case 5: // a part of it again
			end := at + rng.IntN(len(frame)-at)
			frame = slices.Insert(frame, at, slices.Clone(frame[at:end])...)
		default: // tags without end
			frame = append(frame, 0xff, 0xff, 0xff, 0xff, 0x0f)
		}
	}
	if rng.IntN(4) > 0 {
		return wireSized(frame)
	}
	return frame
}

// launch runs one attack: it must be answered or thrown out in time.
func (c *campaign) launch(a attack) {
	nc, err := net.DialTimeout("tcp", c.r.Addr, campaignHang)
	if err != nil {
		c.t.Errorf("dial: %v", err)
		return
	}
	defer func() { _ = nc.Close() }()
	c.dials.Add(1)
	_ = nc.SetDeadline(time.Now().Add(campaignHang))
	if a.stage != onTCP {
		tc := tls.Client(nc, c.r.TLS())
		if tc.Handshake() != nil {
			return
		}
		nc = tc
	}
	if a.stage == loggedIn && !c.login(nc) {
		return
	}
	_, _ = nc.Write(a.send)
	if hc, ok := nc.(interface{ CloseWrite() error }); ok && !a.stay {
		_ = hc.CloseWrite()
	}
	_, err = io.Copy(io.Discard, nc)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.hangs.Add(1)
		c.t.Errorf("stage %d, stay %v: still open after %v: % x…", a.stage, a.stay, campaignHang, a.send[:min(len(a.send), 80)])
	}
}

// login logs the hostile tenant in.
func (c *campaign) login(nc net.Conn) bool {
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.Version, auth.SASLAuthBytes = 2, []byte("\x00hostile\x00"+c.token)
	b := rig.Frame(wireHandshake(1, "PLAIN"), 1, "hostile")
	if _, err := nc.Write(append(b, rig.Frame(auth, 2, "hostile")...)); err != nil {
		return false
	}
	for range 2 {
		var size [4]byte
		if _, err := io.ReadFull(nc, size[:]); err != nil {
			return false
		}
		if _, err := io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return false
		}
	}
	return true
}
