package responses_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// The pages of a conversation are removed together: its responses have most of them in common, and
// each removal waits for a step.
func TestPagesOfAConversationAreRemovedTogether(t *testing.T) {
	answers, turns := sessiontest.Answers("ok"), byte(0)
	var removed [][]kv.Hash
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		turns++
		for n := range turns {
			r.Pages.Add([]kv.Hash{{n}})
		}
		return answers(r)
	}, func(o *openai.Options) {
		o.ForgetPages = func(names []kv.Hash) error {
			removed = append(removed, names)
			return nil
		}
	})
	id := porttest.Decode(t, porttest.Ask(t, "POST", srv.URL+"/v1/conversations",
		`{}`).Body)["id"]
	for range 3 {
		porttest.Post(t, srv, "/v1/responses", fmt.Sprintf(
			`{"input":"hi","conversation":%q}`, id))
	}
	porttest.Ask(t, "DELETE", fmt.Sprintf("%s/v1/conversations/%s", srv.URL, id), "")
	if len(removed) != 1 {
		t.Fatalf("removed in %d calls: %v", len(removed), removed)
	}
	slices.SortFunc(removed[0], func(a, b kv.Hash) int { return int(a[0]) - int(b[0]) })
	if !slices.Equal(removed[0], []kv.Hash{{0}, {1}, {2}}) {
		t.Errorf("removed %v", removed[0])
	}
}
