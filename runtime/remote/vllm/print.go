// A plan as text: commands for a shell with their reasons, a compose file, a Kubernetes manifest.

package vllm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	fmt.Fprintf(&b, "The command\n  %s\n", p.Command())
	return b.String()
}

// A word of a shell, and a quoted piece of it.
var (
	shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^ '"])+`)
	quoted    = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// words splits the arguments as a shell does.
func words(lines Lines) []string {
	list := shellWord.FindAllString(strings.Join(lines.texts(), " "), -1)
	for i, word := range list {
		list[i] = quoted.ReplaceAllString(word, "$1$2")
	}
	return list
}

// environment yields the variables that are valid on any machine.
func (p Plan) environment(visit func(name, value string)) {
	for _, l := range p.Env {
		if name, value, _ := strings.Cut(l.Text, "="); name != "TIKTOKEN_ENCODINGS_BASE" {
			visit(name, value)
		}
	}
}

// SecondPort is the port of vLLM if this program is in front of it at port.
func SecondPort(port int) int {
	if port == 8001 {
		return 8000
	}
	return 8001
}

// front returns the arguments of this program in front of vLLM.
func (p Plan) front(model, host string, port int) []string {
	list := []string{"vllm", "serve", model, "--upstream",
		fmt.Sprintf("http://%s:%d", host, SecondPort(port)), "--host", "0.0.0.0"}
	if port != 8000 {
		list = append(list, "--port", strconv.Itoa(port))
	}
	return list
}

// Compose is a compose file with the plan's container at SecondPort(port), and this program's in
// front of it at port. Clients reach only the front.
func (p Plan) Compose(model string, port int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `services:
  ossrun:
    image: ${OSSRUN_IMAGE:-ossrun}
    command: %s
    environment: {OSSRUN_API_KEY: "${OSSRUN_API_KEY:?a key for the port}"}
    ports: ["%d:%[2]d"]
    volumes: ["ossrun:/home/ossrun/.cache"]
    depends_on: {vllm: {condition: service_healthy}}
    stop_grace_period: 40s
  vllm:
    image: %s
    ipc: host
    healthcheck:
      test: %s
      start_period: 30m
`, flow(p.front(model, "vllm", port)), port, p.Pull, flow([]string{"CMD", "python3", "-c",
		fmt.Sprintf("import urllib.request as u; u.urlopen('http://127.0.0.1:%d/health')",
			SecondPort(port))}))
	b.WriteString("    environment:\n      HF_TOKEN: ${HF_TOKEN:-}\n      HF_HOME: /cache\n")
	p.environment(func(name, value string) {
		fmt.Fprintf(&b, "      %s: %q\n", name, value)
	})
	b.WriteString("    volumes:\n      - ${HF_HOME:-./cache}:/cache\n")
	if p.File != "" {
		fmt.Fprintf(&b, "    configs:\n      - source: vllm\n        target: /%s\n", p.File)
	}
	fmt.Fprintf(&b, "    command: %s\n", flow(append([]string{"--model"}, words(p.Args)...)))
	switch {
	case len(p.kind.Devices) > 0:
		fmt.Fprintf(&b, "    devices: %s\n    group_add: [video]\n"+
			"    security_opt: [\"seccomp=unconfined\"]\n", flow(p.kind.Devices))
	case p.kind.Resource == "google.com/tpu":
		b.WriteString("    privileged: true\n")
	case !p.kind.Plain:
		fmt.Fprintf(&b, "    deploy:\n      resources:\n        reservations:\n"+
			"          devices:\n            - {driver: nvidia, count: %d, capabilities: [gpu]}\n",
			p.TensorParallel)
	}
	b.WriteString("volumes: {ossrun: {}}\n")
	if p.File != "" {
		fmt.Fprintf(&b, "configs:\n  vllm:\n    content: |\n%s", indent(p.YAML(), 6))
	}
	return b.String()
}

// K8s is a deployment, a claim for the weights and a service. In a pod the plan's container starts
// first, at SecondPort(port), then this program's in front of it at port, the only port of the
// service.
func (p Plan) K8s(model string, port int) string {
	limits := ""
	if !p.kind.Plain {
		limits = fmt.Sprintf("          resources: {limits: {%s: %d}}\n", p.kind.Resource,
			p.TensorParallel)
	}
	var b strings.Builder
	if p.File != "" {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vllm}\ndata:\n"+
			"  %s: |\n%s---\n", p.File, indent(p.YAML(), 4))
	}
	fmt.Fprintf(&b, `apiVersion: apps/v1
kind: Deployment
metadata: {name: ossrun}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: ossrun}}
  template:
    metadata: {labels: {app: ossrun}}
    spec:
      terminationGracePeriodSeconds: 40
      initContainers: # one that goes on (restartPolicy), so the front starts when it can be asked
        - name: vllm
          restartPolicy: Always
          image: %s
          args: %s
          startupProbe: {httpGet: {path: /health, port: %d}, periodSeconds: 10, failureThreshold: 180}
%s          env:
            - {name: HF_HOME, value: /cache}
            - name: HF_TOKEN
              valueFrom: {secretKeyRef: {name: huggingface, key: token, optional: true}}
`, p.Pull, flow(append([]string{"--model"}, words(p.Args)...)), SecondPort(port), limits)
	p.environment(func(name, value string) {
		fmt.Fprintf(&b, "            - {name: %s, value: %q}\n", name, value)
	})
	b.WriteString("          volumeMounts:\n            - {name: cache, mountPath: /cache}\n" +
		"            - {name: shm, mountPath: /dev/shm}\n")
	if p.File != "" {
		fmt.Fprintf(&b, "            - {name: config, mountPath: /%s, subPath: %s}\n", p.File,
			p.File)
	}
	fmt.Fprintf(&b, `      containers:
        - name: ossrun
          image: ossrun # the name under which the release's image was pushed
          args: %s
          ports: [{containerPort: %d}]
          readinessProbe: {httpGet: {path: /ready, port: %[2]d}}
          env:
            - name: OSSRUN_API_KEY
              valueFrom: {secretKeyRef: {name: ossrun, key: api-key}}
      volumes:
        - {name: cache, persistentVolumeClaim: {claimName: vllm}}
        - {name: shm, emptyDir: {medium: Memory}}
`, flow(append(p.front(model, "127.0.0.1", port), "--allowed-hosts", "ossrun")), port)
	if p.File != "" {
		b.WriteString("        - {name: config, configMap: {name: vllm}}\n")
	}
	fmt.Fprintf(&b, `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: vllm}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 200Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: ossrun}
spec: {selector: {app: ossrun}, ports: [{port: %d}]}
`, port)
	return b.String()
}

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
