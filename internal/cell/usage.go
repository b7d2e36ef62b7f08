package cell

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

// usageFolder is where metering rows are, inside the data folder: a file for
// each calendar month, a JSON row a line. Rows of one cluster, minute and class
// are added up when they are read, so that a row can go on after a restart.
const usageFolder = "usage"

const (
	usageMonth  = "2006-01" // a file's name, with usageSuffix behind it
	usageSuffix = ".jsonl"
	// maxUsageLine is far longer than any row.
	maxUsageLine = 64 << 10
	// usageMonths is how many months before the current one are kept: a bill can
	// be held against the same month of the year before.
	usageMonths = 12
)

// usageFiles is the metering of one data folder.
type usageFiles struct{ dir string }

// Append implements proxy.UsageSink.
func (u usageFiles) Append(rows []proxy.UsageRow) error {
	if len(rows) == 0 {
		return nil
	}
	var lines []byte
	for i := range rows {
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	name := rows[0].Minute.UTC().Format(usageMonth) + usageSuffix
	if err := appendLines(filepath.Join(u.dir, name), lines); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

// appendLines adds whole lines to a file, down to the disk, or leaves it as it
// was. A line that an earlier end cut short is ended first.
func appendLines(path string, lines []byte) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	return err
}

// MonthMessages implements proxy.UsageSink.
func (u usageFiles) MonthMessages(at time.Time) (map[string]int64, error) {
	totals := map[string]int64{}
	err := u.each(at.UTC().Format(usageMonth), func(r *proxy.UsageRow) { totals[r.Cluster] += r.Msgs })
	return totals, err
}

// each hands every row of a month to a function. A month without a file has
// none; a line that is no row was cut short by a crash and is passed over.
func (u usageFiles) each(month string, row func(*proxy.UsageRow)) error {
	f, err := os.Open(filepath.Join(u.dir, month+usageSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxUsageLine)
	for lines.Scan() {
		var r proxy.UsageRow
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Cluster != "" {
			row(&r)
		}
	}
	if err := errors.Join(lines.Err(), f.Close()); err != nil {
		return fmt.Errorf("usage: %s: %w", month, err)
	}
	return nil
}

// prune removes the files of months that are over for longer than is kept.
// Files with other names are not its own.
func (u usageFiles) prune(now time.Time) error {
	now = now.UTC()
	oldest := time.Date(now.Year(), now.Month()-usageMonths, 1, 0, 0, 0, 0, time.UTC)
	entries, err := os.ReadDir(u.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), usageSuffix)
		month, bad := time.Parse(usageMonth, name)
		if !ok || bad != nil || !month.Before(oldest) {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(u.dir, e.Name())))
	}
	return err
}

// sumRows adds rows of one cluster, minute and class up, in order. Minutes are
// cut to a coarser step first, where there is one.
func sumRows(rows []proxy.UsageRow, step time.Duration) []proxy.UsageRow {
	for i := range rows {
		rows[i].Minute = rows[i].Minute.UTC().Truncate(max(step, time.Minute))
	}
	slices.SortStableFunc(rows, compareUsage)
	var sums []proxy.UsageRow
	for _, r := range rows {
		if last := len(sums) - 1; last >= 0 && compareUsage(sums[last], r) == 0 {
			sums[last].Msgs += r.Msgs
			sums[last].Reqs += r.Reqs
			sums[last].BytesIn += r.BytesIn
			sums[last].BytesOut += r.BytesOut
			continue
		}
		sums = append(sums, r)
	}
	return sums
}

func compareUsage(a, b proxy.UsageRow) int {
	return cmp.Or(a.Minute.Compare(b.Minute), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Class, b.Class))
}
