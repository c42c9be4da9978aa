// ossrun vllm plan and serve: a plan for vLLM by the recipes for this hardware, printed, or run as
// this port's upstream. `ossrun serve --engine vllm` is the older spelling with the same flags,
// which serve does not list.

package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/remote/pool"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve"
)

type vllmSettings struct {
	request vllm.Request
	dryRun  bool
	print   string

	upstream      string // addresses separated by commas
	upstreamModel string
}

// vllmCommand has the verbs of vLLM. Flags that only change the built-in engine are hidden.
func vllmCommand(t Terminal) *cli.Command {
	verb := func(name string) *cli.Command {
		v, plans := &serveVerb{terminal: t}, name == "plan"
		flags := v.flags()
		hide(flags, func(group, flag string) bool {
			switch flag {
			case "engine", "dry-run":
				return true
			case "print":
				return !plans
			case "model", "preset", "max-num-seqs", "gpu-memory-utilization", "host", "port",
				"api-key":
				return false
			}
			switch group {
			case "", string(groupModel), string(groupMemory), string(groupBatch):
				return !slices.Contains(shared, flag)
			case string(groupVLLM):
				return plans && strings.HasPrefix(flag, "upstream")
			}
			return plans || flag == "keep-alive"
		})
		return &cli.Command{
			Name:  name,
			Flags: flags,
			Action: func(c *cli.Context) error {
				v.c, v.start, v.engine, v.vllm.dryRun = c, time.Now(), "vllm", plans
				return v.run()
			},
		}
	}
	return &cli.Command{
		Name: "vllm",
		Subcommands: []*cli.Command{
			verb("serve"), verb("plan"),
		},
		Action: subcommandsOnly("serve and plan"),
	}
}

func (s *vllmSettings) flags() []cli.Flag {
	r := &s.request
	s.print = "plan"
	return flagTable(groupVLLM,
		switchFlag(&s.dryRun, "dry-run"),
		enumFlag(&s.print, "print", "plan", "shell", "k8s", "compose"),
		textFlag(&r.Hardware, "hardware"),
		enumFlag(&r.Launch, "launch", "docker", "local"),
		enumFlag(&r.Speculative, "speculative", "eagle3"),
		&cli.StringSliceFlag{Name: "docker-arg"},
		textFlag(&r.Version, "vllm-version"),
		enumFlag(&r.Platform, "platform", "linux/amd64", "linux/aarch64"),
		minFlag(&r.Input, "input-len", 1),
		minFlag(&r.Output, "output-len", 1),
		minFlag(&r.Concurrency, "concurrency", 1),
		checkedFlag("nodes", "", "must be a number from 2 to 64, or "+
			"addresses with commas between", func(text string) bool {
			n, err := strconv.Atoi(text)
			if r.Machines = splitList(text); err == nil && n <= 64 {
				r.Machines = vllm.MachineNames(n)
			}
			return text == "" || len(r.Machines) > 1
		}),
		enumFlag(&r.Spread, "spread", vllm.Spreads...),
		serversFlag(&s.upstream, "upstream", upstreamURLs),
		textFlag(&s.upstreamModel, "upstream-model"))
}

// upstreamURLs are the URLs of --upstream, without models and dns+.
func upstreamURLs(text string) (list []string) {
	for _, item := range splitList(text) {
		_, address := upstreamItem(item)
		list = append(list, strings.TrimPrefix(address, "dns+"))
	}
	return list
}

// native checks the settings that only this program's engine uses.
func (v *serveVerb) native() (err error) {
	if p := v.options.Preset; p != "" && !slices.Contains(serve.Presets, p) {
		return fail(exitUsage, "--preset must be latency, balanced or throughput, not %q", p)
	}
	for _, f := range v.vllm.flags() {
		if name := f.Names()[0]; onCommandLine(v.c, name) {
			return fail(exitUsage, "--%s is for ossrun vllm serve and ossrun vllm plan", name)
		}
	}
	if v.notes, err = vllmNotes(v.c); err != nil {
		return err
	}
	v.options.Adapters = append(v.options.Adapters, splitList(v.c.String("lora-modules"))...)
	notes, err := speculation(v.c, v.speculative, &v.options)
	if err != nil {
		return err
	}
	v.notes = append(v.notes, notes...)
	return v.prefixCachingFlags()
}

// upstreams returns the servers of ossrun vllm serve: running ones, or vLLM by the recipes for this
// hardware. printed reports that the plan was only printed.
func (v *serveVerb) upstreams() (list []serve.Upstream, printed bool, err error) {
	s, r := &v.vllm, &v.vllm.request
	if len(v.options.Adapters) > 0 {
		return nil, false, fail(exitUsage, "--lora is for the native engine; vLLM takes "+
			"--enable-lora --lora-modules NAME=FOLDER")
	}
	name := cmp.Or(v.options.Model, "20b")
	r.Model = vllmModel(name)
	if r.Folder, err = modelFolder(r.Model); err != nil {
		return nil, false, err
	}
	r.Model = cmp.Or(r.Folder, r.Model)
	if s.upstream != "" {
		list, err = v.running(name)
		return list, false, err
	}
	show := s.dryRun || v.c.IsSet("print")
	if err = v.fillRequest(show); err != nil {
		return nil, false, err
	}
	p, err := vllm.Make(*r)
	if err != nil {
		return nil, false, fail(exitUsage, "%s", err)
	}
	if show {
		text := map[string]func() string{"plan": p.String, "shell": p.Shell,
			"k8s":     func() string { return p.K8s(r.Model, v.port) },
			"compose": func() string { return p.Compose(r.Model, v.port) }}[s.print]
		_, err := fmt.Fprint(v.terminal.Out, text())
		return nil, true, err
	}
	p.Key = rand.Text() // other programs on this machine can reach its port too
	return []serve.Upstream{{Name: name, Servers: pool.Options{Key: p.Key,
		URLs: []string{fmt.Sprintf("http://%s:%d", r.Host, r.Port)}},
		Start: func(ctx context.Context, onExit func(error)) (func() error, error) {
			return v.startVLLM(ctx, p, onExit)
		}}}, false, nil
}

// vocabularyFolder has Harmony's vocabulary, which vLLM would fetch.
func vocabularyFolder() string { return filepath.Join(xdg.CacheHome, "ossrun", "vllm") }

// fillRequest fills the plan's request from the flags and, unless they name it, this hardware.
func (v *serveVerb) fillRequest(show bool) error {
	s, c, r := &v.vllm, v.c, &v.vllm.request
	if text := v.speculative; text != "" && !json.Valid([]byte(text)) {
		return fail(exitUsage, notAnObject, asWritten(c, "speculative-config"))
	}
	if text := c.String("tensor-parallel-size"); c.IsSet("tensor-parallel-size") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fail(exitUsage, "--tensor-parallel-size must be a number from 1 up, not %q",
				text)
		}
		r.TensorParallel = n
	}
	r.Preset, r.Memory = v.options.Preset, v.options.Settings.GPUMemoryUtilization
	r.Concurrency = cmp.Or(v.options.Settings.MaxNumSeqs, r.Concurrency)
	r.Extra, r.DockerArgs = vllmWords(c), c.StringSlice("docker-arg")
	if r.Hardware == "" {
		gpu, gpus, firmware := serve.Hardware(c.Context)
		if gpu == "" {
			return fail(exitUsage, "no GPU found. To plan for another machine: --hardware H100")
		}
		r.Hardware, r.GPUs, r.Firmware = vllm.Recognise(gpu), gpus, firmware
		r.Software = vllm.FindSoftware(c.Context, "/")
	}
	if len(r.Machines) > 0 && !show {
		return fail(exitUsage, "a start is on one machine. Run ossrun vllm plan --nodes, which "+
			"prints the line of each")
	}
	if r.Spread != "" && s.print == "compose" {
		return fail(exitUsage, "--spread is printed as plan, shell or k8s")
	}
	return v.placeUpstream(show)
}

// placeUpstream chooses vLLM's address and folders: as this port's upstream, or, if only shown, in
// its place.
func (v *serveVerb) placeUpstream(show bool) (err error) {
	r, print := &v.vllm.request, v.vllm.print
	manifest := print == "k8s" || print == "compose"
	r.HasFront = manifest || !show
	// without this folder vLLM fetches the vocabulary
	onThisMachine := len(r.Machines) == 0 && !(show && v.c.IsSet("hardware"))
	if onThisMachine && (!show || manifest || vllm.WriteVocabulary(vocabularyFolder()) == nil) {
		r.Vocabulary = vocabularyFolder()
	}
	switch {
	case manifest:
		r.Host, r.Port = "", vllm.SecondPort(v.port)
	case show:
		if r.Port = v.port; v.c.IsSet("host") {
			r.Host = v.host
		}
		if v.apiKey != "" {
			r.Extra = append(r.Extra, "--api-key "+vllm.Quote(v.apiKey))
		}
	default:
		if r.HFHome, err = store.Home(); err == nil {
			r.Host, r.Port, err = freePort()
		}
	}
	return err
}

// running are the models of --upstream: its URLs are name's, or follow a name and =. The default
// model is the first.
func (v *serveVerb) running(name string) (list []serve.Upstream, err error) {
	for _, f := range v.vllm.flags() {
		if n := f.Names()[0]; v.c.IsSet(n) && !strings.HasPrefix(n, "upstream") {
			return nil, fail(exitUsage, "--upstream starts nothing, so there is no plan for --%s "+
				"to change or show", n)
		}
	}
	if passed := passedFlags(v.c); len(passed) > 0 {
		return nil, fail(exitUsage, "--upstream starts nothing, so there is no plan for %s to "+
			"change", passed[0])
	}
	last := 0
	for _, item := range splitList(v.vllm.upstream) {
		model, address := upstreamItem(item)
		if model != "" || list == nil {
			model = cmp.Or(model, name)
			same := func(u serve.Upstream) bool { return vllmModel(u.Name) == vllmModel(model) }
			if last = slices.IndexFunc(list, same); last < 0 {
				last = len(list)
				list = append(list, serve.Upstream{Name: model, Servers: pool.Options{
					Key: os.Getenv("OSSRUN_UPSTREAM_KEY"), Model: v.vllm.upstreamModel}})
				if e, ok := models.Lookup(model); ok {
					list[last].Servers.Names = append(slices.Clone(e.Aliases), e.ID)
				}
			}
		}
		list[last].Servers.URLs = append(list[last].Servers.URLs, address)
	}
	if len(list) > 1 && (v.vllm.upstreamModel != "" || v.servedNames != "") {
		return nil, fail(exitUsage, "--upstream-model and --served-model-name name one model, and "+
			"--upstream has %d", len(list))
	}
	if v.options.Model == "" {
		return list, nil
	}
	i := slices.IndexFunc(list, func(u serve.Upstream) bool {
		return vllmModel(u.Name) == vllmModel(name)
	})
	if i < 0 {
		return nil, fail(exitUsage, "--upstream has no servers of %s. Add %[1]s=http://HOST:PORT",
			name)
	}
	list[0], list[i] = list[i], list[0]
	return list, nil
}

// upstreamItem splits MODEL=URL; without a model it is "".
func upstreamItem(item string) (model, address string) {
	model, address, ok := strings.Cut(item, "=")
	if !ok || strings.Contains(model, "://") {
		return "", item
	}
	return model, address
}

func freePort() (host string, port int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, fmt.Errorf("find a free port for vLLM: %w", err)
	}
	return "127.0.0.1", l.Addr().(*net.TCPAddr).Port, l.Close()
}

// startVLLM starts vLLM. ended is called if it exits before stop is called.
func (v *serveVerb) startVLLM(ctx context.Context, p vllm.Plan, onExit func(error)) (
	stop func() error, err error) {
	folder := vocabularyFolder()
	if err := vllm.WriteVocabulary(folder); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		err := vllm.Run(ctx, p, folder, vllm.Watcher{Log: cleanWriter{v.terminal.Err},
			Begin: func() {
				v.terminal.report("vLLM is started: %s", p.Command())
				for _, w := range p.Warnings {
					v.terminal.report("%s: %s", w.Text, w.Why)
				}
			},
			Trouble: func(t vllm.Trouble) {
				v.terminal.report("known trouble: %s; %s (%s)", t.Name, t.Cure, t.Place)
			}})
		if ctx.Err() == nil {
			onExit(cmp.Or(err, errors.New("vLLM ended")))
			err = nil // already reported
		}
		done <- err
	}()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// vllmWords are the flags to pass on to vLLM, in its spelling, that the plan does not set itself.
func vllmWords(c *cli.Context) (list []string) {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || !isVLLMs(name) && !slices.Contains(shared, name) ||
			name == "tensor-parallel-size" { // the plan sets it itself
			continue
		}
		flag := "--" + spelling(c, name)
		switch v := c.Value(name).(type) {
		case bool:
			if v {
				list = append(list, flag)
			}
		case cli.StringSlice: // settings inside a setting
			for _, inner := range v.Value() {
				if strings.HasPrefix(inner, "{") {
					list = append(list, flag+" "+vllm.Quote(inner))
				} else {
					list = append(list, "-cc."+vllm.Quote(inner))
				}
			}
		default:
			list = append(list, flag+" "+vllm.Quote(fmt.Sprint(v)))
		}
	}
	slices.Sort(list)
	return append(list, passedFlags(c)...)
}

// passedFlags are the flags that are vLLM's alone, as they were typed.
func passedFlags(c *cli.Context) []string {
	list, _ := c.App.Metadata[passedOn].([]string)
	return list
}

// shared are the flags of serve that are passed to vLLM, in addition to vllmFlags.
var shared = []string{"max-model-len", "kv-cache-dtype", "swap-space", "max-num-batched-tokens",
	"enable-prefix-caching", "no-enable-prefix-caching", "speculative-config", "stream-interval",
	"served-model-name"}

// otherModels are families of models in names of repositories.
var otherModels = regexp.MustCompile(`(?i)qwen|llama|mistral|mixtral|gemma|deepseek|phi-|glm-|` +
	`kimi|minimax|nemotron|granite|falcon|olmo`)

// modelFolder is the absolute path of a model in a folder, or "" for a repository. The port in
// front renders prompts for gpt-oss, so other models are refused.
func modelFolder(model string) (string, error) {
	_, listed := models.Lookup(model) // as checkpoint.Resolve: a folder called 20b is none
	if stat, err := os.Stat(model); listed || err != nil || !stat.IsDir() {
		if otherModels.MatchString(model) && !strings.Contains(strings.ToLower(model), "gpt-oss") {
			return "", fail(exitUsage, "%s is not gpt-oss, and ossrun in front of vLLM speaks "+
				"only its format. Run vllm serve %[1]s without ossrun", model)
		}
		return "", nil
	}
	text, err := models.ReadFile(filepath.Join(model, "config.json"))
	if err == nil && !models.IsGPTOSS(text) {
		err = models.ForeignError(text) // of gpt-oss vLLM takes more forms than this engine
	}
	if err != nil {
		return "", fail(exitModel, "%s", err)
	}
	return filepath.Abs(model)
}

// vllmModel is a model's name in plans: 20b, 120b or a repository.
func vllmModel(name string) string {
	e, ok := models.Lookup(name)
	if !ok || e.HF == "" {
		return name
	}
	if short, ok := strings.CutPrefix(e.HF, "openai/gpt-oss-"); ok {
		return short
	}
	return e.HF
}
