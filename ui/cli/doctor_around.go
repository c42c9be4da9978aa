// What ossrun doctor says beyond the engine: running servers, what vLLM would meet here, and the
// archive for a bug report.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/bench"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/runtime/vllm"
)

// expectSpeeds adds what models that fit can be expected to do on the CPU.
func expectSpeeds(ctx context.Context, d *doctor.Doctor) error {
	var list []*doctor.Model
	var specs []models.Spec
	for i := range d.Models {
		if m := &d.Models[i]; m.Fits && m.Name != models.Demo {
			list, specs = append(list, m), append(specs, m.Spec)
		}
	}
	if d.Backend().Caps().Discrete || len(list) == 0 {
		return nil
	}
	rates, err := bench.Expect(ctx, d.Backend(), specs, d.Settings(specs[0]))
	if err != nil {
		return fmt.Errorf("the speed to expect: %w", err)
	}
	for i, m := range list {
		m.Expected = rates[i]
	}
	return nil
}

// lookAround adds what lies outside of the engine: running servers, and what vLLM would meet.
func lookAround(ctx context.Context, d *doctor.Doctor) {
	d.Servers, d.Troubles = []doctor.Server{}, []doctor.Trouble{}
	list, _ := runningServers(ctx) // a folder that cannot be read has none of ours
	for _, s := range list {
		one := doctor.Server{PID: s.PID, URL: s.URL, State: string(s.State)}
		for _, m := range s.Models {
			one.Models = append(one.Models, m.Name)
		}
		d.Servers = append(d.Servers, one)
	}
	d.Port = portFor(defaultAddress, d.Servers)
	told := map[string]bool{}
	for _, card := range d.GPUs.GPUs {
		for _, t := range vllm.TroublesOn(card.Name) {
			if !told[t.Name] {
				told[t.Name] = true
				d.Troubles = append(d.Troubles, doctor.Trouble{Name: t.Name, Cure: t.Cure,
					Place: t.Place, NotHere: t.NotHere})
			}
		}
	}
}

const defaultAddress = "127.0.0.1:8000"

// portFor says whether a server could listen at an address now.
func portFor(address string, running []doctor.Server) doctor.Port {
	p := doctor.Port{Address: address}
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	switch at := func(s doctor.Server) bool { return s.URL == "http://"+address }; {
	case slices.ContainsFunc(running, at):
		p.Taken = "one of the servers above has it"
	case errors.Is(err, syscall.EADDRINUSE):
		p.Taken = "another program has it; ossrun serve --port takes another, 0 any that is free"
	case err != nil:
		p.Taken = err.Error()
	}
	return p
}

func writeBundle(c *cli.Context, d *doctor.Doctor, file string) error {
	config, _ := os.ReadFile(d.Config.Path) // it need not be there
	info, err := wholeBuild()
	if err != nil {
		return err
	}
	b := doctor.Bundle{Version: info.String(), Report: &d.Report, Config: config,
		Names: documentedVariables, Time: time.Now()}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(exitUsage, "--bundle: %s", err)
	}
	if err := errors.Join(b.Write(f), f.Close()); err != nil {
		return fail(exitFailure, "--bundle: %s", err)
	}
	fmt.Fprintf(c.App.ErrWriter, "%s has the report; look at it before you send it\n", file)
	return nil
}

// documentedVariables are those of docs/configuration.md that users set (held by a test).
var documentedVariables = []string{
	"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "HF_ENDPOINT", "HF_TOKEN",
	"HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
	"OLLAMA_MODELS", "LLAMA_CACHE", "EXA_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL",
	"PYTHON_EXECUTION_BACKEND", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE",
	"SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME",
	"XDG_RUNTIME_DIR", "NO_COLOR", "TERM", "COLORTERM", "TERM_PROGRAM", "VISUAL", "EDITOR",
	"OSSRUN_API_KEY", "OSSRUN_UPSTREAM_KEY",
	"VLLM_API_KEY", "OPENAI_API_KEY", "OSSRUN_LIBCUDA", "OSSRUN_LIBAMDHIP64",
	"OSSRUN_DECODE_KERNEL", "GOMEMLIMIT",
}
