#!/usr/bin/env python3
"""Take requests out of recorded client traffic: what is sent, and of the reply only the status and the ids that later
requests refer to. The clients' prompts are other projects' texts: every one is written anew, in its shape (as long, with
its lines, marks and indents).

  python3 make_clients.py EXCHANGES_FOLDER NAME...     writes clients/NAME.jsonl
"""
import itertools, json, re, sys

OWN = ('The work is done in small steps.', 'Look at what is there before you change it.', 'Say what you have done, and why.',
  'A name tells what a thing is.', 'Ask when the task can be read in two ways.', 'Read the whole file first.', 'Do not guess.',
  'Each change has a test that fails without it.', 'Leave nothing half done.', 'Keep the answer short.', 'Units stand beside numbers.')

def line_anew(line, words):
    """as many characters of our own words, behind the marks and the indent that the line begins with"""
    mark = re.match(r'[^A-Za-z0-9]*', line)[0]
    rest, own = len(line) - len(mark), ''
    while len(own) < rest: own += next(words) + ' '
    return mark + own[:rest].rstrip()

def text_anew(text):
    text = re.sub(r'\[\[cut (\d+)\]\]', lambda m: 'x' * int(m[1]), text)
    words = itertools.cycle(' '.join(OWN[len(text) % len(OWN):] + OWN[:len(text) % len(OWN)]).split())
    return '\n'.join(line_anew(line, words) for line in text.split('\n'))

def anew(o, key=''):
    if isinstance(o, dict): return {k: anew(v, k) for k, v in o.items()}
    if isinstance(o, list): return [anew(v, key) for v in o]
    if isinstance(o, str) and (key == 'description' or key in ('content', 'text', 'instructions') and len(o) > 40): return text_anew(o)
    return o

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
            keep = {'method': r['request']['method'], 'path': r['request']['path'], 'body': anew(body), 'status': reply.get('status', 200)}
            if answer.get('object') == 'response':
                keep['response'] = answer['id']
                keep['calls'] = [i['call_id'] for i in answer.get('output', []) if 'call_id' in i]
            out.write(json.dumps(keep, separators=(',', ':')) + '\n')
