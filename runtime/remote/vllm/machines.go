// Several machines: each with its server and one front of all, or one model spread over all by
// vLLM's launcher, which is Ray in versions before 0.18.
//
// What must stay true: the printed lines start the servers as they are, one line a machine; only
// the first machine of a spread model answers requests.

package vllm

import (
	"fmt"
	"strings"
)

// Machine is the line that is run on a machine.
type Machine struct{ Name, Command string }

// Spreads are the ways to spread a model: shares of each layer, layers, or experts.
var Spreads = []string{"tp", "tp-pp", "dep"}

// hasFront tells whether this program's port sends the requests, here or from another machine.
func (p *planner) hasFront() bool { return p.r.HasFront || len(p.r.Machines) > 0 }

// usesRay tells whether the version has no launcher of its own.
func (p *planner) usesRay() bool { return p.r.Spread != "" && isBefore(p.r.Version, "v0.18.0") }

// spreadArgs adds the arguments that all machines of one model have.
func (p *planner) spreadArgs() {
	p.Plan.spread = p.r.Spread
	if p.r.Spread == "" {
		return
	}
	p.add(&p.Env, p.book.SpreadEnv)
	p.add(&p.Args, p.book.Spread)
	if p.r.Spread == "tp" {
		p.replace(fmt.Sprint("--tensor-parallel-size ", p.TensorParallel*len(p.r.Machines)))
	}
}

// rank is the arguments by which a machine knows its place.
func rank(i, head string) string {
	text := " --node-rank " + i + " --master-addr " + head
	if i != "0" {
		text += " --headless"
	}
	return text
}

// machines makes the lines of several machines, and the front's.
func (p *planner) machines() {
	if len(p.r.Machines) < 2 {
		return
	}
	var servers []string
	for i, name := range p.r.Machines {
		m := Machine{name, p.Command()}
		switch {
		case p.r.Spread != "" && !p.usesRay():
			m.Command += rank(fmt.Sprint(i), p.r.Machines[0])
		case p.r.Spread == "" && p.r.Launch == "local" && !strings.HasPrefix(name, placeholder):
			m.Command += " --host " + name
		}
		if i == 0 || p.r.Spread == "" {
			servers = append(servers, fmt.Sprintf("http://%s:%d", name, p.r.Port))
		}
		if i == 0 || !p.usesRay() {
			p.Machines = append(p.Machines, m)
		}
	}
	p.Front = fmt.Sprintf("ossrun vllm serve %s --upstream %s", Quote(p.r.Model),
		strings.Join(servers, ","))
	p.Warnings.add("the servers have no key, so only the front should reach them",
		"VLLM_API_KEY gives them one, and OSSRUN_UPSTREAM_KEY names it to the front", NotInGuide)
}

// placeholder begins the names of machines without addresses.
const placeholder = "MACHINE"

func MachineNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(placeholder, i+1))
	}
	return names
}
