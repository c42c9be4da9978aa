package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

func resolved(tool *Tool, function string) string {
	c, err := tool.Resolve(session.Call{Recipient: "functions." + function, Arguments: "{}"})
	return fmt.Sprintf("%s: %s %v", c.Server, c.Tool, err)
}

// Restricted tools: the excluded ones are neither offered nor described nor run, and the rest may
// be few enough to be described at once.
func TestOnlySomeTools(t *testing.T) {
	s, _ := open(t, Options{Context: func() int { return 1000 }}, ownProcess("x"))
	tool, r := conversation(t, s)
	says(t, tool, "functions.describe_tool", `{"name":"x_fail"}`, "functions.x_fail can be called")
	tool.Restrict([]string{"count", "echo.text", "long schema"})
	r = session.Request{}
	if tool.Offer(&r); len(r.Functions) != 3 || tool.Runs("functions.x_fail") ||
		resolved(tool, "x_echo_text") != "x: echo.text <nil>" ||
		resolved(tool, "x_fail") != ":  there is no function x_fail" {
		t.Errorf("%+v", r.Functions)
	}
	says(t, tool, "functions.x_count", `{}`, "call 1")
	if _, err := tool.Run(t.Context(), session.Call{Recipient: "functions.x_fail", Arguments: "{}"},
		nil); err == nil || !strings.Contains(err.Error(), "no function") {
		t.Error(err)
	}
	var names []string
	for _, one := range tool.Tools() {
		names = append(names, one.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"count", "echo.text", "long schema"}) {
		t.Error(names)
	}
	tool.Restrict([]string{})
	r = session.Request{}
	if tool.Offer(&r); len(r.Functions) != 0 {
		t.Errorf("%+v", r.Functions)
	}
	tool.Restrict(nil)
	r = session.Request{}
	if tool.Offer(&r); len(r.Functions) != 2 || !tool.Runs("functions.x_fail") ||
		resolved(tool, describeTool) != ":  <nil>" {
		t.Errorf("%+v", r.Functions)
	}
}

// Too many to be described at once: the list has only those that are left, and no other is
// described.
func TestOnlySomeOfTooManyTools(t *testing.T) {
	s, _ := open(t, Options{Context: func() int { return 100 }}, ownProcess("x"))
	tool, _ := conversation(t, s)
	tool.Restrict([]string{"count", "fail"})
	var r session.Request
	tool.Offer(&r)
	if len(r.Functions) != 1 || strings.Count(r.Functions[0].Description, "\n") != 2 ||
		!strings.Contains(r.Functions[0].Description, "\nx_count: ") {
		t.Errorf("%+v", r.Functions)
	}
	fails(t, tool, "functions.describe_tool", `{"name":"x_slow"}`, `no function "x_slow"`)
	says(t, tool, "functions.describe_tool", `{"name":"x_fail"}`, "functions.x_fail can be called")
}

// A server that says the name of another of itself goes by its address.
func TestServersThatSayOneName(t *testing.T) {
	named := func(name string) *source { return &source{Server: Server{Name: name}, label: name} }
	says := func(address, name string) *source {
		return &source{Server: Server{Name: address, unnamed: true}, label: name}
	}
	list := []*source{says("a:1", "files"), says("b:1", "docs"), says("c:1", "docs"),
		says("d:1", "e:1"), named("files"), says("e:1", "other")}
	disambiguate(list)
	var shown []string
	for _, s := range list {
		shown = append(shown, s.label)
	}
	if want := []string{"a:1", "docs", "c:1", "d:1", "files", "other"}; !slices.Equal(shown, want) {
		t.Errorf("%q", shown)
	}
}
