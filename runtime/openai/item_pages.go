// Lists of items, page by page: after, limit and order.

package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

const (
	pageDefault = 20
	pageMost    = 100
)

type itemPage struct {
	Object  string            `json:"object"` // list
	Data    []json.RawMessage `json:"data"`
	FirstID string            `json:"first_id"`
	LastID  string            `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// pageOf is a page of items, which are given oldest first. The order is desc if the client names
// none.
func pageOf(r *http.Request, items []json.RawMessage) (any, *fault) {
	query := r.URL.Query()
	items = slices.Clone(items)
	switch order := query.Get("order"); order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return nil, invalid("order", "order is %q, it must be asc or desc", order)
	}
	limit := pageDefault
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > pageMost {
			return nil, invalid("limit", "limit is %q, it must be a number of 1 to %d", text,
				pageMost)
		}
		limit = n
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(b json.RawMessage) bool { return idOf(b) == after })
		if i < 0 {
			return nil, invalid("after", "after is %q, there is no item with this id", after)
		}
		items = items[i+1:]
	}
	return pageWith(items[:min(limit, len(items))], len(items) > limit), nil
}

func pageWith(items []json.RawMessage, more bool) itemPage {
	page := itemPage{Object: "list", Data: append([]json.RawMessage{}, items...), HasMore: more}
	if n := len(items); n > 0 {
		page.FirstID, page.LastID = idOf(items[0]), idOf(items[n-1])
	}
	return page
}

func idOf(item json.RawMessage) string {
	var it struct{ ID string }
	_ = json.Unmarshal(item, &it) // it was parsed when it came
	return it.ID
}
