"""The list of intents and the synonym lists, filled by the facts_*.py files.

An intent has verb phrases ("how do i ..." goes in front of them), noun phrases ("tell me about ...") and whole
questions. In the little grammar {a|b|} picks one, <name> is a synonym list of MACROS, alternatives are split by ";".
The frames that turn phrases into sentences are in phrases.py and are shared with topics the model must decline.
$P in a question and its answer is a number drawn at random, so that copying it must be learned.
"""

MACROS = {
    "get": "download|get|fetch|pull|grab|obtain|install|acquire|retrieve|load|have|bring over|set up",
    "weights": (
        "weights|model|model weights|model files|weight files|model data|checkpoint|language "
        "model|models|files|gpt-oss weights|gpt-oss"
    ),
    "machine": "machine|computer|laptop|pc|box|desktop|workstation|system|notebook|mac|device|server|rig",
    "show": "show|display|print|see|view|list|check|look at|find out|tell me|know|get",
    "change": (
        "change|set|adjust|modify|choose|pick|select|control|configure|tune|specify|alter|define|influence|"
        "tweak|fix|switch|determine|turn"
        " up|turn down|raise|lower|increase|reduce"
    ),
    "srv": (
        "server|api|endpoint|api server|http server|rest api|http api|backend|web service|openai server|openai "
        "api|openai endpoint|openai compatible api|openai style api|local api|local server|local endpoint|port|web "
        "server|openai compatible server"
    ),
    "start": (
        "start|run|launch|open|host|expose|bring up|spin up|set up|provide|offer|create|begin|boot|get|turn "
        "on|serve|use"
    ),
    "card": "gpu|graphics card|video card|card|accelerator|graphics|graphics hardware|graphics chip",
    "small": (
        "20b|small model|smaller model|small one|smaller one|gpt-oss-20b|gpt-oss 20b|20b model|little one|20 b "
        "model|gpt-oss:20b"
    ),
    "big": (
        "120b|big model|large model|bigger model|big one|larger one|large one|gpt-oss-120b|gpt-oss 120b|120b "
        "model|biggest one|huge model|120 b model"
    ),
    "ans": "answer|reply|response|output|text|result|generation|replies|answers|responses|outputs|results",
    "it": "it|the model|this|the llm|the ai|ossrun|the assistant|the thing|this tool|the program|gpt-oss|the bot",
    "del": (
        "delete|remove|erase|uninstall|throw away|get rid of|clean up|wipe|drop|discard|clear|trash|kick out|purge"
    ),
    "disk": "disk|drive|hard disk|ssd|hard drive|storage|disk space|volume|partition|filesystem",
    "dir": "folder|directory|path|place|location|spot|files|part of my disk",
    "flag": "flag|option|setting|switch|parameter|argument|command line option|knob",
    "think": "think|reason|ponder|reflect|consider things|deliberate|brood",
    "speed": (
        "speed|performance|throughput|tokens per second|token rate|tok/s|generation speed|tokens a second|how fast "
        "it is|latency"
    ),
    "others": (
        "other machines|other computers|my network|the lan|the local network|my phone|other people|another "
        "machine|my colleagues|coworkers|the office|my team|other devices|the whole network|remote machines|a "
        "different computer|friends|another laptop|outside"
    ),
    "prog": (
        "my app|my program|my application|other programs|other software|my script|another program|my editor|my "
        "code|apps|my website|an ide|vs code|other tools|my bot|a plugin|clients"
    ),
    "msg": "question|prompt|request|query|message|single question|one question",
}

INTENTS = {}


def lines(s):
    """The alternatives of a grammar text, white space made single."""
    return [x for x in (" ".join(part.split()) for part in s.split(";")) if x]


def intent(name, think, say, vp="", np="", q="", weight=1.0):
    INTENTS[name] = {"think": think, "say": say, "vp": lines(vp), "np": lines(np), "q": lines(q), "weight": weight}
