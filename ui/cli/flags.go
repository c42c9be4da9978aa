// Kinds of flags. A value out of bounds is a usage error that names the flag; the default is the
// bound field's value.

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/urfave/cli/v2"
)

type group string

const (
	groupModel    = group("Model and device")
	groupMemory   = group("Context and memory")
	groupBatch    = group("Batching")
	groupListen   = group("The port")
	groupLife     = group("Life cycle")
	groupSampling = group("The answer")
	groupSessions = group("Conversations")
	groupScreen   = group("The screen")
	groupTools    = group("Tools")
	groupVLLM     = group("vLLM")
	groupSettings = group("Settings")

	// of measuring
	groupServer    = group("The server")
	groupRequests  = group("The requests")
	groupResult    = group("The result")
	groupSuite     = group("--suite seed")
	groupBenchFile = group("A file of the result")
)

// shortNames are short names of flags, known from other programs.
var shortNames = map[string]string{"model": "m", "prompt": "p", "continue": "c", "threads": "t",
	"max-tokens": "n", "temperature": "temp", "verbose": "v", "extra-request-body": "extra-body",
	"random-input-len": "input-len",
	"random-output-len": "output-len prefix-repetition-output-len custom-output-len " +
		"spec-bench-output-len hf-output-len"}

// flagTable makes a verb's flags from a table: a group before its flags, and lists of flags with
// groups of their own.
func flagTable(table ...any) (flags []cli.Flag) {
	heading := group("")
	for _, row := range table {
		switch row := row.(type) {
		case group:
			heading = row
		case []cli.Flag:
			flags = append(flags, row...)
		case cli.Flag: // a pointer to a struct with a Category
			fields, name := reflect.ValueOf(row).Elem(), row.Names()[0]
			fields.FieldByName("Category").SetString(string(heading))
			if shortNames[name] != "" {
				fields.FieldByName("Aliases").Set(reflect.ValueOf(strings.Fields(shortNames[name])))
			}
			flags = append(flags, row)
		}
	}
	return flags
}

// hide takes flags out of the help, the completion and the manual. They go on working.
func hide(flags []cli.Flag, hidden func(group, name string) bool) {
	for _, f := range flags {
		if hidden(f.(cli.CategorizableFlag).GetCategory(), f.Names()[0]) {
			reflect.ValueOf(f).Elem().FieldByName("Hidden").SetBool(true)
		}
	}
}

// boolFlag is a flag that its verb reads by name.
func boolFlag(name string) cli.Flag { return &cli.BoolFlag{Name: name} }

func switchFlag(to *bool, name string) cli.Flag {
	return &cli.BoolFlag{Name: name, Destination: to, Value: *to}
}

func textFlag(to *string, name string) cli.Flag {
	return &cli.StringFlag{Name: name, Destination: to, Value: *to}
}

// serverFlag is a server's address; serversFlag has several in one value, split by list.
func serverFlag(to *string, name string) cli.Flag {
	return serversFlag(to, name, func(v string) []string { return []string{v} })
}

func serversFlag(to *string, name string, list func(string) []string) cli.Flag {
	return &cli.StringFlag{Name: name, Destination: to, Value: *to,
		Action: func(_ *cli.Context, v string) error {
			for _, address := range list(v) {
				c, err := client.New(address, "")
				if err != nil {
					return fail(exitUsage, "--%s must be the address of a server, such as "+
						"http://127.0.0.1:8000, not %q", name, address)
				}
				c.Close()
			}
			return nil
		}}
}

func intFlag(to *int, name string) *cli.IntFlag {
	return &cli.IntFlag{Name: name, Destination: to, Value: *to}
}

// minFlag is a whole number of at least least.
func minFlag(to *int, name string, least int) cli.Flag {
	f := intFlag(to, name)
	f.Action = func(_ *cli.Context, n int) error {
		if n < least {
			return fail(exitUsage, "--%s must be at least %d, not %d", name, least, n)
		}
		return nil
	}
	return f
}

// boundedFloat is a number with bounds for error messages.
type boundedFloat struct {
	*cli.Float64Flag
	bounds string
}

// boundedFlag is a number; bounds describes the valid ones.
func boundedFlag[F float32 | float64](to *F, name string, ok func(float64) bool,
	bounds string) cli.Flag {
	return &boundedFloat{&cli.Float64Flag{Name: name, Value: float64(*to),
		Action: func(_ *cli.Context, v float64) error {
			if *to = F(v); !ok(v) {
				return fail(exitUsage, "--%s must %s, not %v", name, bounds, v)
			}
			return nil
		}}, bounds}
}

func flagNamed(cmd *cli.Command, name string) cli.Flag {
	for _, f := range cmd.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// units are suffixes of whole numbers, as in vLLM.
var units = map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// expandUnits is a value as the parser reads it: 32000 for 32k if the flag is a whole number.
func expandUnits(f cli.Flag, value string) string {
	if _, isInt := f.(*cli.IntFlag); isInt && len(value) > 1 {
		last := len(value) - 1
		n, err := strconv.ParseFloat(value[:last], 64)
		if unit := units[value[last]]; err == nil && unit > 0 {
			return strconv.FormatFloat(n*unit, 'f', -1, 64)
		}
	}
	return value
}

func invalidValue(f cli.Flag, name, value string) string {
	must := "be a whole number"
	switch f := f.(type) {
	case *boundedFloat:
		must = f.bounds
	case *cli.Float64Flag:
		must = "be a number"
	case *cli.Uint64Flag:
		must += " from 0 up"
	case *cli.BoolFlag:
		must = "be true or false"
	}
	return fmt.Sprintf("%s must %s, not %q", dashed(name), must, value)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// funcFlag is a text that is passed to set.
func funcFlag(name, standard string, set func(string) error) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: standard,
		Action: func(_ *cli.Context, v string) error { return set(v) }}
}

// inputFlag is an input file or folder: a missing one is an error before any work.
func inputFlag(to *string, name string) *cli.StringFlag {
	return funcFlag(name, "", func(v string) error {
		*to = v
		return checkExists(name, v)
	})
}

// outputFlag is an output file; its folder must exist.
func outputFlag(to *string, name string) *cli.StringFlag {
	return funcFlag(name, "", func(v string) error {
		*to = v
		if info, err := os.Stat(v); err == nil && info.IsDir() {
			return fail(exitUsage, "--%s must be a file, and %s is a folder", name, v)
		}
		return checkExists(name, filepath.Dir(v))
	})
}

func checkExists(name, path string) error {
	if _, err := os.Stat(path); path != "" && err != nil {
		return fail(exitUsage, "--%s %s", name, err)
	}
	return nil
}

// checkedFlag is a text that set may refuse; must describes valid ones.
func checkedFlag(name, standard, must string, set func(string) bool) *cli.StringFlag {
	return funcFlag(name, standard, func(v string) error {
		if !set(v) {
			return fail(exitUsage, "--%s %s, not %q", name, must, v)
		}
		return nil
	})
}

func jsonFlag(name string, set func(map[string]any)) cli.Flag {
	return checkedFlag(name, "", "must be a JSON object", func(s string) bool {
		var members map[string]any
		if json.Unmarshal([]byte(s), &members) != nil || members == nil {
			return false
		}
		set(members)
		return true
	})
}

func repeatedFlag(name string, set func(*cli.Context, string) error) cli.Flag {
	return &cli.StringSliceFlag{Name: name,
		Action: func(c *cli.Context, list []string) (err error) {
			for _, v := range list {
				err = cmp.Or(err, set(c, v))
			}
			return err
		}}
}

// wordFlag is a text, usually one of words, which completion offers.
type wordFlag struct {
	*cli.StringFlag
	words []string
}

func oneOfWords(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// choiceFlag is one of words, in lower case.
func choiceFlag(name, standard string, set func(word string), words ...string) cli.Flag {
	return &wordFlag{checkedFlag(name, standard, "must be "+oneOfWords(words), func(v string) bool {
		v = strings.ToLower(v)
		ok := slices.Contains(words, v)
		if ok {
			set(v)
		}
		return ok
	}), words}
}

func enumFlag(to *string, name string, words ...string) cli.Flag {
	return choiceFlag(name, *to, func(word string) { *to = word }, words...)
}

// splitList splits a list at commas, or vLLM's JSON list.
func splitList(s string) (list []string) {
	for o := range strings.SplitSeq(strings.Trim(strings.TrimSpace(s), "[]"), ",") {
		if o = strings.Trim(strings.TrimSpace(o), `"'`); o != "" {
			list = append(list, o)
		}
	}
	return list
}

// intsFlag is whole numbers of at least least, separated by commas.
func intsFlag(to *[]int, name, standard string, least int, example string) cli.Flag {
	return checkedFlag(name, standard, "needs numbers such as "+example, func(v string) bool {
		*to = []int{}
		for _, f := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' }) {
			n, err := strconv.Atoi(strings.TrimSpace(f))
			if err != nil || n < least {
				return false
			}
			*to = append(*to, n)
		}
		return true
	})
}
