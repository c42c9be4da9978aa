#!/usr/bin/env python3
"""Take requests out of recorded client traffic: what is sent, and of the reply only the status and the ids that later
requests refer to.

  python3 make_clients.py EXCHANGES_FOLDER NAME...     writes clients/NAME.jsonl
"""
import json, sys

def ids(reply):
    if reply.get('stream') == 'sse':
        return next((e['response'] for e in reversed(reply['events']) if isinstance(e.get('response'), dict)), {})
    return reply.get('body') if isinstance(reply.get('body'), dict) else {}

folder, bodies = sys.argv[1], {}
for name in sys.argv[2:]:
    bodies.clear()
    with open(f'{folder}/{name}.jsonl') as f, open(f'clients/{name}.jsonl', 'w') as out:
        f.readline()
        for line in f:
            r = json.loads(line)
            body, reply = r['request']['body'], r['reply'] or {}
            if isinstance(body, dict) and '$same_as' in body: body = bodies[body['$same_as']]
            elif isinstance(body, dict) and isinstance(body.get('tools'), dict): body = {**body, 'tools': bodies[body['tools']['$same_as']]['tools']}
            bodies[r['seq']] = body
            answer = ids(reply)
            keep = {'method': r['request']['method'], 'path': r['request']['path'], 'body': body, 'status': reply.get('status', 200)}
            if answer.get('object') == 'response':
                keep['response'] = answer['id']
                keep['calls'] = [i['call_id'] for i in answer.get('output', []) if 'call_id' in i]
            out.write(json.dumps(keep, separators=(',', ':')) + '\n')
