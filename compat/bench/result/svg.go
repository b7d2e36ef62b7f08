package result

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// The drawing's measures, in its own units.
const (
	labelWidth = 190
	barWidth   = 470
	valueWidth = 120
	barHeight  = 11
	barGap     = 2
	groupGap   = 12
	topHeight  = 62
	fontSize   = 11
)

// colours of peers, in their order: told apart by eyes that see few colours.
func colours() []string { return []string{"#0072b2", "#999999", "#d55e00", "#cccccc", "#009e73"} }

// SVG draws the throughput of all peers as bars: medians, with a line for what
// the rounds lay between.
func (r *Run) SVG() string {
	workloads := r.having(MBps)
	var peers []Peer
	most := 0.0
	for _, p := range r.Peers {
		for _, w := range workloads {
			if s, ok := r.Of(p.ID, w, MBps); ok {
				most = max(most, s.Max)
				if !slices.ContainsFunc(peers, func(q Peer) bool { return q.ID == p.ID }) {
					peers = append(peers, p)
				}
			}
		}
	}
	group := len(peers)*(barHeight+barGap) + groupGap
	width, height := labelWidth+barWidth+valueWidth, topHeight+len(workloads)*group+8
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="%d">`+"\n", width, height, fontSize)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="8" y="18" font-size="14">Throughput, MB/s of record values</text>`+"\n")
	x := 8
	for i, p := range peers {
		fmt.Fprintf(&b, `<rect x="%d" y="32" width="11" height="11" fill="%s"/><text x="%d" y="42">%s</text>`+"\n",
			x, colours()[i%len(colours())], x+16, html.EscapeString(p.Title))
		x += 34 + len(p.Title)*6
	}
	for i, w := range workloads {
		top := topHeight + i*group
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, top+(group-groupGap)/2+4, html.EscapeString(r.title(w)))
		for j, p := range peers {
			if s, ok := r.Of(p.ID, w, MBps); ok && most > 0 {
				bar(&b, top+j*(barHeight+barGap), colours()[j%len(colours())], s, most)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func bar(b *strings.Builder, y int, colour string, s Spread, most float64) {
	at := func(v float64) float64 { return v / most * barWidth }
	middle := y + barHeight/2
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y, at(s.Median), barHeight, colour)
	fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#000000"/>`, labelWidth+at(s.Min), middle, labelWidth+at(s.Max), middle)
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", labelWidth+at(max(s.Median, s.Max))+5, y+barHeight-2, short(s.Median))
}
