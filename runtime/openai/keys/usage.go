// Usage of a key by day, and its limits: requests a minute, tokens a day.
//
// What must stay true: usage is in the store a second later, under the days of UTC, and servers
// that share a store share a day's limit.

package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// Usage is what a key has used; Prompt includes the Cached tokens.
type Usage struct {
	Requests   int `json:"requests"` // that generate
	Prompt     int `json:"prompt_tokens"`
	Cached     int `json:"cached_tokens"`
	Completion int `json:"completion_tokens"`
	Reserved   int `json:"reserved_tokens,omitempty"` // by requests that run, or that were killed
}

// Tokens is the number that a day's limit applies to.
func (u Usage) Tokens() int { return u.Prompt + u.Completion + u.Reserved }

func (u Usage) plus(v Usage) Usage {
	return Usage{u.Requests + v.Requests, u.Prompt + v.Prompt, u.Cached + v.Cached,
		u.Completion + v.Completion, u.Reserved + v.Reserved}
}

// keyState is the state of one key in this process.
type keyState struct {
	name    string
	lease   *lease           // nil: the key was removed
	unsaved map[string]Usage // by day, not yet in the store
	day     string           // of stored
	stored  Usage            // in the store, of all servers
	total   Usage            // of this process

	allowance float64   // requests that may be sent at once
	updated   time.Time // when allowance was updated
}

const dayFormat = time.DateOnly

// Admit counts a request that generates. Beyond a limit it is refused: why names the limit.
func (c *Client) Admit() (wait time.Duration, why string) {
	if c == nil {
		return 0, ""
	}
	r := c.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	now, u := r.now().UTC(), r.use[c.ID]
	if day := now.Format(dayFormat); u.day != day {
		u.day, u.stored = day, r.stored(c.ID, day)
	}
	all := u.stored.plus(u.unsaved[u.day])
	if used := all.Tokens() - all.Reserved; c.Tokens > 0 && used >= c.Tokens {
		limit := c.tokenLimit(used, now)
		return limit.RetryAfter, limit.Reason
	}
	if c.Rate > 0 {
		a := float64(c.Rate) / 60 // a second
		u.allowance = min(float64(c.Rate), u.allowance+a*now.Sub(u.updated).Seconds())
		u.updated = now
		if u.allowance < 1 {
			return time.Duration((1 - u.allowance) / a * float64(time.Second)), fmt.Sprintf(
				"this key may send %d requests a minute", c.Rate)
		}
		u.allowance--
	}
	r.add(c.ID, u, Usage{Requests: 1})
	return 0, ""
}

// Count adds the usage of an answer, and ends its budget, which may be nil.
func (c *Client) Count(v session.Usage, b *Budget) {
	if c == nil {
		return
	}
	c.ring.mu.Lock()
	defer c.ring.mu.Unlock()
	u := c.ring.use[c.ID]
	c.ring.add(c.ID, u, Usage{Prompt: v.Prompt, Cached: v.Cached, Completion: v.Completion})
	if b != nil && b.reserved > 0 {
		u.unsaved[b.day] = u.unsaved[b.day].plus(Usage{Reserved: -b.reserved})
		b.reserved, b.unused = 0, 0
	}
}

// add is called with r.mu held.
func (r *Ring) add(id string, u *keyState, v Usage) {
	day := r.now().UTC().Format(dayFormat)
	u.unsaved[day], u.total = u.unsaved[day].plus(v), u.total.plus(v)
	if r.flush == nil {
		r.flush = time.AfterFunc(time.Second, func() { _ = r.Flush() }) // errors return later
	}
}

// Close ends the use of the store, after the last request.
func (r *Ring) Close() error {
	if r == nil {
		return nil
	}
	r.forgetting.Wait()
	return r.Flush()
}

// Flush writes the new usage to the store.
func (r *Ring) Flush() (err error) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flush != nil {
		r.flush.Stop()
		r.flush = nil
	}
	for id, u := range r.use {
		for day, v := range u.unsaved {
			var sum Usage
			failed := r.store.Change(func(c *records.Change) error {
				record, _ := c.Get(records.KindUsage, keyOf(id, day))
				sum = decodeUsage(record).plus(v)
				value, err := json.Marshal(sum)
				return errors.Join(err, c.Put(records.Record{Kind: records.KindUsage,
					Key: keyOf(id, day), Value: value}))
			})
			if err = errors.Join(err, failed); failed != nil {
				continue
			}
			delete(u.unsaved, day)
			if day == u.day {
				u.stored = sum
			}
		}
	}
	return err
}

func (r *Ring) stored(id, day string) Usage {
	record, _ := r.store.Get(records.KindUsage, keyOf(id, day))
	return decodeUsage(record)
}

func keyOf(id, day string) string { return id + " " + day }

func decodeUsage(r records.Record) (u Usage) {
	_ = json.Unmarshal(r.Value, &u) // an empty record has none
	return u
}

// AllUsage is the usage in a store, by key id and day.
func AllUsage(s records.Store) map[string]map[string]Usage {
	all := map[string]map[string]Usage{}
	for _, record := range s.List(records.KindUsage) {
		id, day, _ := strings.Cut(record.Key, " ")
		if all[id] == nil {
			all[id] = map[string]Usage{}
		}
		all[id][day] = decodeUsage(record)
	}
	return all
}
