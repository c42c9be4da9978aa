package answer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// Large bodies are checked a few at a time, and counted; a small one is checked at once, however
// many wait; one more than may wait is refused.
func TestASmallBodyPassesLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, text, most = 64, 300 << 10, 3
		d := New(Options{MaxWaiting: large})
		leave := make(chan struct{})
		inside := make(chan struct{}, large)
		handle := d.BodyHandler(func(*Exchange, *http.Request, *fields.Object) (any,
			*fields.Fault) {
			inside <- struct{}{}
			<-leave
			return nil, nil
		})
		ask := func(client, body string, handle Handler) *fields.Fault {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body))
			e := NewExchange(httptest.NewRecorder(), "", nil)
			e.Client = client
			defer func() { e.EndPreparing() }()
			_, f := handle(e, r)
			return f
		}
		for range large {
			go ask("hostile", `{`+strings.Repeat(" ", text)+`}`, handle)
		}
		synctest.Wait()
		if n := len(inside); n != most || d.Preparing() != large {
			t.Errorf("%d are checked at once, %d are counted", n, d.Preparing())
		}
		handled := false
		small := d.BodyHandler(func(*Exchange, *http.Request, *fields.Object) (any, *fields.Fault) {
			handled = true
			f := ask("hostile", `{}`, handle)
			if f == nil || f.Status != http.StatusTooManyRequests {
				t.Errorf("one more than may wait: %v", f)
			}
			return nil, nil
		})
		if f := ask("tiny", `{}`, small); f != nil || !handled || len(inside) != most {
			t.Errorf("%v; %d large ones came before it", f, len(inside)-most)
		}
		close(leave)
		time.Sleep(time.Minute) // the pauses of its client are over
		if n := len(inside); n != large || d.Preparing() != 0 {
			t.Errorf("%d of %d were checked, %d are counted", n, large, d.Preparing())
		}
	})
}
