// How far the server is with the agent's prompt, in the terminal's title: the agent has the screen,
// and a long prompt on a CPU is minutes of silence.
//
// What must stay true: the title is changed only while a prompt is read, and by one write.

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/runtime/remote/client"
)

// showPrefill asks the server every second, until ctx ends. A server without the figure, and a key
// that may not read it, leave the title alone.
func showPrefill(ctx context.Context, s agentPort, w io.Writer) {
	c, err := client.New(s.URL, s.Key)
	if err != nil {
		return
	}
	defer c.Close()
	var p prefill
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case now := <-tick.C:
			var text []byte
			if c.Call(ctx, "GET", "/metrics", nil, &text) != nil {
				continue
			}
			if title := p.title(unreadTokens(text), now); title != "" {
				fmt.Fprintf(w, "\x1b]2;%s\x07", title)
			}
		}
	}
}

// unreadTokens is the number of prompt tokens that are not computed yet, of all models.
func unreadTokens(metrics []byte) (n float64) {
	for line := range bytes.Lines(metrics) {
		if bytes.HasPrefix(line, []byte("ossrun:prompt_tokens_unread")) {
			words := bytes.Fields(line)
			v, _ := strconv.ParseFloat(string(words[len(words)-1]), 64) // 0: no number
			n += v
		}
	}
	return n
}

// prefill is the reading of prompts since it last began.
type prefill struct {
	most  float64 // unread tokens at its beginning
	began time.Time
}

// title is the next title, "" for none: shares of a prompt, and "ossrun" when it is read.
func (p *prefill) title(unread float64, now time.Time) string {
	switch {
	case unread == 0 && p.most == 0:
		return ""
	case unread == 0:
		*p = prefill{}
		return "ossrun"
	case unread > p.most:
		*p = prefill{most: unread, began: now}
	}
	text := fmt.Sprintf("ossrun: prompt %.0f %%", 100*(1-unread/p.most))
	if read := p.most - unread; read > 0 {
		remaining := time.Duration(float64(now.Sub(p.began)) * unread / read)
		text += fmt.Sprintf(", %s left", remaining.Round(time.Second))
	}
	return text
}
