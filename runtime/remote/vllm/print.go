// A plan as text: commands for a shell with their reasons, a compose file, a Kubernetes manifest.

package vllm

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// Command is the one command that starts the server, as an argument list for a shell.
func (p Plan) Command() string {
	words := append(p.Env.texts(), "vllm serve")
	if len(p.Docker) > 0 {
		words = append([]string{"docker run"}, p.Docker.texts()...)
		words = append(words, p.Image, "--model")
	}
	return strings.Join(append(words, p.Args.texts()...), " ")
}

// YAML is the content of the config file, "" if there is none.
func (p Plan) YAML() string { return strings.Join(append(p.Config.texts(), ""), "\n") }

// String is the plan for a person: the commands, with a reason and a place for every line.
func (p Plan) String() string {
	var b strings.Builder
	section := func(title string, lines []Line) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s\n", title)
		for _, l := range lines {
			fmt.Fprintf(&b, "  %s\n      # %s (%s)\n", l.Text, l.Why, l.Place)
		}
		fmt.Fprintln(&b)
	}
	section("Before the start", p.Prepare)
	section("The file "+p.File, p.Config)
	if len(p.Docker) > 0 {
		section("docker run", p.Docker)
		section(p.Image, p.Args)
	} else {
		section("Environment", p.Env)
		section("vllm serve", p.Args)
	}
	section("To know", p.Warnings)
	section("By hand", p.Look)
	for _, m := range p.Machines {
		fmt.Fprintf(&b, "The command on %s\n  %s\n\n", m.Name, m.Command)
	}
	if len(p.Machines) > 0 {
		fmt.Fprintf(&b, "The command in front\n  %s\n", p.Front)
		return b.String()
	}
	fmt.Fprintf(&b, "The command\n  %s\n", p.Command())
	return b.String()
}

// Shell is the commands alone, a line each.
func (p Plan) Shell() string {
	if len(p.Machines) == 0 {
		return p.Command() + "\n"
	}
	var b strings.Builder
	for _, m := range p.Machines {
		fmt.Fprintf(&b, "%s # on %s\n", m.Command, m.Name)
	}
	return b.String() + p.Front + " # in front\n"
}

// A word of a shell, and a quoted piece of it.
var (
	shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^ '"])+`)
	quoted    = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// Quote is a word of a shell for any text.
func Quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}

// words splits the arguments as a shell does.
func words(lines Lines) []string {
	list := shellWord.FindAllString(strings.Join(lines.texts(), " "), -1)
	for i, word := range list {
		list[i] = quoted.ReplaceAllString(word, "$1$2")
	}
	return list
}

// SecondPort is the port of vLLM if this program is in front of it at port.
func SecondPort(port int) int {
	if port == 8001 {
		return 8000
	}
	return 8001
}

//go:embed manifests.tmpl
var manifests string

// manifest is a plan as the templates see it.
type manifest struct {
	Plan
	Model          string // as the command line names it
	Port, Inner    int    // of the front, and of vLLM
	Words          []string
	Init, Headless bool // vLLM is in the front's pod; this machine answers no requests
}

func (m manifest) Kind() kind     { return m.kind }
func (m manifest) Spread() string { return m.spread }

// GPUs are those of one machine: the product of vLLM's parallel sizes, as planned or as typed.
func (m manifest) GPUs() int {
	sizes := map[string]int{}
	for i, word := range m.Words {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(m.Words) {
			value = m.Words[i+1]
		}
		if size, err := strconv.Atoi(value); err == nil && parallelSizes[name] != "" {
			sizes[parallelSizes[name]] = size
		}
	}
	n := 1
	for _, size := range sizes {
		n *= size
	}
	if m.spread != "" {
		n /= len(m.Machines)
	}
	return max(n, 1)
}

var parallelSizes = map[string]string{"--tensor-parallel-size": "tp", "-tp": "tp",
	"--pipeline-parallel-size": "pp", "-pp": "pp", "--data-parallel-size": "dp", "-dp": "dp"}

// Variables are those that are valid on any machine.
func (m manifest) Variables() (list [][]string) {
	for _, l := range m.Env {
		if name, value, _ := strings.Cut(l.Text, "="); name != "TIKTOKEN_ENCODINGS_BASE" {
			// eth0 is a pod's
			list = append(list, []string{name, strings.ReplaceAll(value, "$IFACE_NAME", "eth0")})
		}
	}
	return list
}

// Hosts are the servers of a compose file.
func (m manifest) Hosts() (list []string) {
	for _, machine := range m.Machines {
		list = append(list, "http://"+machine.Name)
	}
	if list == nil {
		list = []string{"http://vllm"}
	}
	return list
}

// FrontArgs are the arguments of this program in front of the servers.
func (m manifest) FrontArgs(servers []string) []string {
	for i := range servers {
		servers[i] += fmt.Sprint(":", m.Inner)
	}
	list := []string{"vllm", "serve", m.Model, "--upstream", strings.Join(servers, ","), "--host",
		"0.0.0.0"}
	if m.Port != 8000 {
		list = append(list, "--port", strconv.Itoa(m.Port))
	}
	return list
}

// PodArgs are those in a pod.
func (m manifest) PodArgs() []string {
	server := "dns+http://vllm"
	switch {
	case m.Init:
		server = "http://127.0.0.1"
	case m.spread != "":
		server = "http://vllm"
	}
	return append(m.FrontArgs([]string{server}), "--allowed-hosts", "ossrun")
}

// Rank is the manifest with the arguments of a machine of a spread model.
func (m manifest) Rank(i string) manifest {
	m.Words = append(slices.Clone(m.Words), strings.Fields(rank(i, "$(LWS_LEADER_ADDRESS)"))...)
	m.Headless = i != "0"
	return m
}

// print fills a template.
func (p Plan) print(name, model string, port int) string {
	t := template.New("")
	fill := func(name string, data any) string {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, name, data); err != nil {
			panic(err) // a test fills all of them
		}
		return b.String()
	}
	t = template.Must(t.Funcs(template.FuncMap{"flow": flow, "indent": indent,
		"part": func(name string, data any, columns int) string {
			return indent(fill(name, data), columns)
		}}).Parse(manifests))
	return fill(name, manifest{Plan: p, Model: model, Port: port, Inner: SecondPort(port),
		Words: append([]string{"--model"}, words(p.Args)...), Init: len(p.Machines) == 0})
}

// Compose is a compose file with this program's container at port.
func (p Plan) Compose(model string, port int) string { return p.print("compose", model, port) }

// K8s is a manifest with this program's service at port.
func (p Plan) K8s(model string, port int) string { return p.print("k8s", model, port) }

// flow is a YAML list on one line.
func flow(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func indent(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", columns) + line)
	}
	return b.String()
}
