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
	n := len(p.r.Machines)
	p.Plan.spread = p.r.Spread
	switch {
	case p.r.Spread == "":
		return
	case p.usesRay():
		p.Args.add("--distributed-executor-backend ray", "the launcher of this version", NotInGuide)
	default:
		for _, name := range []string{"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
			p.Env.add(name+"=$IFACE_NAME", "the network between the machines", placeStrategies)
		}
		p.Args.add(fmt.Sprint("--nnodes ", n), "the machines", placeStrategies)
	}
	switch p.r.Spread {
	case "tp":
		p.replace(fmt.Sprint("--tensor-parallel-size ", p.TensorParallel*n))
	case "tp-pp":
		p.Args.add(fmt.Sprint("--pipeline-parallel-size ", n), "each machine has some layers",
			placeStrategies)
	case "dep":
		p.Args.add("--enable-expert-parallel", "each GPU has some experts", placeStrategies)
		p.Args.add(fmt.Sprint("--data-parallel-size ", n), "each machine has its requests",
			placeStrategies)
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
