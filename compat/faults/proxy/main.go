// Command proxy stands between a gateway and a cell and injects the faults of a
// plan: {"seed":1,"rules":[{"fault":"cut-after","route":"/api/v1/push","skip":9,"count":5}]}.
// Every fault is a line of JSON on stdout.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/mainly"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6712", "address to listen on")
	cell := flag.String("cell", "http://127.0.0.1:6711", "URL of the cell")
	plan := flag.String("plan", "", "file with the plan; none: every call passes")
	flag.Parse()
	mainly.Run("proxy", 0, func(ctx context.Context) (bool, error) { return true, run(ctx, *addr, *cell, *plan) })
}

func run(ctx context.Context, addr, cell, file string) error {
	var plan inject.Plan
	if file != "" {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &plan)
		}
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	p, err := inject.Start(addr, cell, plan, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "proxy: listening on", p.URL)
	<-ctx.Done()
	return p.Close()
}
