// /v1/sessions: the conversations of ossrun chat, which the chat page lists, continues and adds to
// where the person who starts the server allows it (ossrun serve --share-sessions).
//
// What must stay true: a client has its own conversations, the operator those of the terminal; of
// all web pages only the server's own reads them; a writer changes nothing that it has not read, or
// that a chat in a terminal has open.

package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/records"
)

// Sessions shares the conversations of ossrun chat.
type Sessions struct {
	// Claim keeps chats from opening a conversation, or reports that one has it open.
	Claim func(id string) (release func(), ok bool)
	Erase func(s records.Store, client, id string) error // unless a chat has it open
}

const maxSessions = 32 << 20 // bytes of the latest conversations in a list

func versionOf(value json.RawMessage) string { return fmt.Sprintf("%x", sha256.Sum256(value)) }

func (p *port) sessions(e *answer.Exchange, r *http.Request) (records.Store, *fields.Fault) {
	origin := r.Header.Get("Origin")
	switch {
	case p.Sessions == nil:
		return nil, fields.Refusal(http.StatusNotFound, "", "sessions_not_shared", "this server "+
			"does not share conversations; start it with --share-sessions")
	case origin != "" && !strings.HasSuffix(origin, "://"+r.Host):
		return nil, fields.Refusal(http.StatusForbidden, "", "origin_not_allowed",
			"only the server's own page may read conversations")
	}
	return records.Owned(p.Store, e.Client), nil
}

func (p *port) listSessions(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	store, f := p.sessions(e, r)
	if f != nil {
		return nil, f
	}
	all, size := []any{}, 0
	for _, r := range store.List(records.KindChat) {
		if size += len(r.Value); size <= maxSessions {
			all = append(all, map[string]any{"version": versionOf(r.Value), "session": r.Value})
		}
	}
	return map[string]any{"object": "list", "data": all}, nil
}

// sessionID is the form of an id, which names a file too.
var sessionID = regexp.MustCompile(`^\w[\w.-]{0,63}$`)

func (p *port) saveSession(e *answer.Exchange, r *http.Request, o *fields.Object) (any,
	*fields.Fault) {
	store, f := p.sessions(e, r)
	if f != nil {
		return nil, f
	}
	id, value, seen := r.PathValue("id"), bytes.Clone(o.Get("session").Raw), o.Text("version")
	var session struct{ ID string }
	if json.Unmarshal(value, &session) != nil || session.ID != id || !sessionID.MatchString(id) {
		return nil, fields.Invalid("session", "session must be a conversation with the id of the "+
			"path, as GET /v1/sessions lists it")
	}
	release, ok := p.Sessions.Claim(id)
	if !ok {
		return nil, fields.Refusal(http.StatusConflict, "", "session_open", "a chat in a terminal "+
			"has this conversation open. Close that chat first")
	}
	defer release()
	err := store.Change(func(c *records.Change) error {
		old, ok := c.Get(records.KindChat, id)
		if ok != (seen != "") || ok && versionOf(old.Value) != seen {
			return fields.Refusal(http.StatusConflict, "version", "session_changed",
				"the conversation has changed. Read it again")
		}
		return c.Put(records.Record{Kind: records.KindChat, Key: id, Value: value})
	})
	if err != nil {
		return nil, responses.ChangeFault(err)
	}
	return map[string]any{"version": versionOf(value)}, nil
}

func (p *port) deleteSession(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	store, f := p.sessions(e, r)
	if f != nil {
		return nil, f
	}
	id := r.PathValue("id")
	if _, ok := store.Get(records.KindChat, id); !ok {
		return nil, fields.NotFound("id", "Session", id)
	}
	if err := p.Sessions.Erase(store, e.Client, id); err != nil {
		return nil, fields.Refusal(http.StatusConflict, "", "session_open", err.Error())
	}
	return map[string]any{"id": id, "object": "session.deleted", "deleted": true}, nil
}
