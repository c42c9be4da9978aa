// Budgets: tokens of a key's day, which are reserved before they are used.
//
// What must stay true: however many requests run at once, on all servers with one store, a key uses
// no more than its limit; after kill -9 the reservations of its requests count until the day ends.

package keys

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// tokenLimit is the error of a key that has used its tokens of a day.
func (c *Client) tokenLimit(used int, now time.Time) *session.LimitError {
	tomorrow := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return &session.LimitError{RetryAfter: tomorrow.Sub(now), Reason: fmt.Sprintf(
		"this key may use %d tokens a day (UTC), and has used %d", c.Tokens, used)}
}

// reservedRetry is the delay after which running requests may have returned tokens.
const reservedRetry = 2 * time.Second

// Budget is the reservation of one request.
type Budget struct {
	client   *Client
	day      string
	reserved int // in the store, of that day
	unused   int // of reserved
}

// Budget is for one request; nil if the key has no limit of tokens. Count ends it.
func (c *Client) Budget() *Budget {
	if c == nil || c.Tokens == 0 {
		return nil
	}
	return &Budget{client: c}
}

// Reserve implements session.Budget. The error is a *session.LimitError, or the store's.
func (b *Budget) Reserve(prompt, most int, open bool) (granted int, err error) {
	c, r := b.client, b.client.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	now, u := r.now().UTC(), r.use[c.ID]
	b.day = cmp.Or(b.day, now.Format(dayFormat))
	err = r.store.Change(func(change *records.Change) error {
		record, _ := change.Get(records.KindUsage, keyOf(c.ID, b.day))
		sum := decodeUsage(record)
		all := sum.plus(u.unsaved[b.day])
		granted = min(most, c.Tokens-all.Tokens()+b.unused-prompt)
		if granted < 1 || granted < most && !open {
			limit := c.tokenLimit(all.Tokens()-all.Reserved, now)
			if all.Reserved > b.reserved {
				limit.Reason += fmt.Sprintf("; %d more are reserved by requests that run",
					all.Reserved-b.reserved)
				limit.RetryAfter = reservedRetry
			}
			limit.Reason += fmt.Sprintf(". This one may need %d", prompt+most)
			return limit
		}
		sum.Reserved += prompt + granted - b.unused
		value, err := json.Marshal(sum)
		return errors.Join(err, change.Put(records.Record{Kind: records.KindUsage,
			Key: keyOf(c.ID, b.day), Value: value}))
	})
	if err != nil {
		return 0, err
	}
	b.reserved += prompt + granted - b.unused
	b.unused = 0
	return granted, nil
}

// Return implements session.Budget. Later turns of the request use these tokens first.
func (b *Budget) Return(tokens int) {
	b.client.ring.mu.Lock()
	defer b.client.ring.mu.Unlock()
	b.unused += tokens
}
