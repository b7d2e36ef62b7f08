package broker

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// naiveRun is runOf as one reads its description.
func naiveRun(key, partition string, at int64) keyRun {
	r := keyRun{from: at, count: 1}
	const number = `(0|[1-9][0-9]*)`
	producer := regexp.MustCompile(`\Aqe:` + number + `:` + number + `:`).FindStringSubmatch(key)
	if producer != nil {
		sequence, named := strings.CutPrefix(key[len(producer[0]):], partition+":")
		if named && regexp.MustCompile(`\A`+number+`\z`).MatchString(sequence) {
			id, few := upTo(producer[1], math.MaxInt64)
			epoch, small := upTo(producer[2], math.MaxInt32)
			first, early := upTo(sequence, math.MaxInt32)
			if few && small && early {
				r.by.id, r.by.epoch, r.first = id, epoch, first
				return r
			}
		}
	}
	sum := sha256.Sum256([]byte(key))
	r.single, r.hash = true, keyHash(sum[:])
	return r
}

func upTo(digits string, limit int64) (uint64, bool) {
	n, ok := new(big.Int).SetString(digits, 10)
	return n.Uint64(), ok && n.Cmp(big.NewInt(limit)) <= 0
}

// TestRunsOfKeys holds the runs of a lane, which goes on with a run by looking at
// a key's end alone, against every key taken by itself.
func TestRunsOfKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	odd := []string{
		"", "text", "qe:", "qe:1:0:0:", "qe:1:0:0:07", "qe:1:0:0:+7", "qe:1:0:0:-7", "qe:01:0:0:7", "qe:1:0:0:7:8", "qe:1:0:0:2147483648",
		"qe:9223372036854775807:2147483647:0:0", "qe:9223372036854775808:0:0:7", "qe:1:2147483648:0:7", "qe:1:0:1:7", "qe:1:0:0:7 ", "qe:1:0:0:99999999999999999999",
		"qe:18446744073709551617:0:0:7", "qe:1:0:0:18446744073709551623", "qe::0:0:7", "qe:1::0:7",
	}
	for _, partition := range []string{"0", "a:b", "p"} {
		for range 60 {
			l := lane{partition: partition}
			var want []keyRun
			next := rng.IntN(20)
			if rng.IntN(4) == 0 {
				next = math.MaxInt32 - 3
			}
			for at := range int64(40) {
				key := fmt.Sprintf("qe:%d:0:%s:%d", 1+rng.IntN(12)/11, partition, next)
				switch next++; rng.IntN(12) {
				case 0:
					key = odd[rng.IntN(len(odd))]
				case 1:
					next = rng.IntN(20)
				case 3:
					key, next = "", next-1 // the sequence goes on, the items do not
				case 2:
					key = key[:len(key)-1] + "0" + key[len(key)-1:]
				}
				l.note([]byte(key), at)
				if key == "" {
					continue
				}
				r := naiveRun(key, partition, at)
				if n := len(want); n > 0 && want[n-1].joins(&r) {
					want[n-1].count++
				} else {
					want = append(want, r)
				}
			}
			if !slices.Equal(l.runs, want) {
				t.Fatalf("%+v, want %+v", l.runs, want)
			}
		}
	}
}
