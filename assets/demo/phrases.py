"""Sentence frames, small talk and foreign topics: how the phrases of facts.py (and of topics the model must decline)
become what people type. The frames are shared by both sides, so a frame alone never tells what the answer is.
"""

import random
import re

from facts import INTENTS, MACROS
from intents import lines
from names import ADJECTIVES, COMMON, ITEMS, PEOPLE, PLACES, WORDS
from synonyms import other_words, proper

WHOLE = [4]  # how often a whole question is drawn, against 4 for verb and 2 for noun phrases
SYNONYMS = [0.0]  # share of the questions in which words are replaced
PROPER = [0.0]  # share of the questions with names and short forms in capitals
DOUBT = {}  # phrase -> how likely the model misunderstands it, see doubt.py; drawn more often
TWICE = [0.0]  # share of the questions that are said in two ways, one after the other

VP_FRAMES = """
how do i <vp>?; how can i <vp>?; how do i <vp>; how to <vp>; how to <vp>?; how would i <vp>?; how do you <vp>?; i want
to <vp>; i want to <vp>.; i would like to <vp>; i'd like to <vp>, how?; i need to <vp>; i have to <vp>; i must <vp>;
{can|could|may} {i|we} <vp>?; can you tell me how to <vp>?; tell me how to <vp>; show me how to <vp>; explain how to
<vp>; please explain how to <vp>; {what|which} {is|'s} the {command|way|flag|option|trick|key|setting} to <vp>?;
{what|which} {command|flag|option} {do|should|must} i {use|type|give|run|enter} to <vp>?; which {command|flag|option}
lets me <vp>?; what {do|must|should|can} i {type|do|run|enter|press} to <vp>?; is there {a|any}
{way|command|option|flag|possibility|method|trick|chance} to <vp>?; is it possible to <vp>?; <vp>; <vp> please; please
<vp>; {any|a} way to <vp>?; what is the {best|easiest|right|fastest|simplest} way to <vp>?; i am trying to <vp>; i'm
trying to <vp> but i don't know how; {i can't|i cannot} figure out how to <vp>; help me <vp>; help me to <vp>; where
{can|do} i <vp>?; my {boss|friend|teacher|colleague|brother|wife|customer} wants to <vp>; {my boss|somebody|a friend|my
teacher} asked me to <vp>; do you know how to <vp>?; {we|our team} {want|need|wants|would like} to <vp>; {let me|i
will|i should} <vp>; teach me to <vp>; i was wondering how to <vp>; i wonder how i can <vp>; {could|would} you explain
how i <vp>?; what if i want to <vp>?; {it would be nice|it would be great} to <vp>; i have no idea how to <vp>; {how
does one|how might i|how should i} <vp>?; {i'd|i would} rather <vp>; instructions to <vp>; {in order|just} to <vp>,
what do i type?; i forgot how to <vp>; {does|can} ossrun let me <vp>?; {can|could} {it|ossrun|this} <vp>?; is
{ossrun|it} able to <vp>?; the command to <vp>; i was told i can <vp>, how?; remind me how to <vp>;
{gotta|wanna|gonna|need 2|lemme|i wanna|i gotta} <vp>{| pls| asap| now|}; how {tf|the hell|on earth|do u|d'you|do people|does
a beginner} <vp>; {can u|could u|can ya} {help me |tell me how to |}<vp>; yo, how do i <vp>; {steps|recipe|howto|syntax|
command line|cheat code} to <vp>; {suppose|say|assume|imagine} i {want|need|have} to <vp>; {i'm|i am} {supposed|asked|
told|expected} to <vp>; {i've been|i have been} trying to <vp> {for an hour|all day|since yesterday}; {what's|whats} the
{syntax|trick|magic word|shortcut} to <vp>; {go ahead and|kindly|now|quickly|just} <vp>; {never|i don't want to} read
manuals, just <vp>; {before lunch|tonight|tomorrow|on monday} i {must|want to|have to} <vp>; {my task|the plan|the goal|
what i want}: <vp>; {where|how} to <vp>; {any clue|any idea|idea} how to <vp>; {it should|let it|make it} <vp>; what would
you {type|do} to <vp>; {how hard|how easy} is it to <vp>; {please help:|goal:|todo:|wish:} <vp>; {i'm after|i'm looking for}
a way to <vp>; {no clue|dunno} how to <vp>; {as a user|as an admin} i want to <vp>; {so|and} how exactly do i <vp>;
<ving>; <ving>?; <ving> - how; {help|trouble|stuck|problem|problems|question} {with|about} <ving>; i'm {stuck at|interested
in|thinking of|planning on|into|not good at} <ving>; {what about|how about|how does one go about|tell me about|a word on|
what's the deal with} <ving>; {is|how is} <ving> {possible|done|allowed|supported|hard}; {i need help|having trouble|i am
busy} <ving>; {<ving> for dummies|<ving> explained|<ving> how to}
"""

NP_FRAMES = """
<np>?; <np>; what about <np>?; tell me about <np>; tell me {more|something} about <np>; is there <np>?; do you have
<np>?; where is <np>?; what is <np>?; what's <np>?; explain <np>; explain <np> to me; i need <np>; i want <np>; i'd
like <np>; i would like <np>; <np> please; please give me <np>; info {on|about} <np>; help with <np>; i need help with
<np>; a question about <np>; question about <np>; can i have <np>?; does it have <np>?; does ossrun
{have|support|offer|know} <np>?; {what|which} is the {command|flag|option|way} for <np>?; how do i get <np>?; show me
<np>; i am looking for <np>; i'm looking for <np>; {something|anything} about <np>; can you give me <np>?; i
{read|heard} about <np>, what is it?; i {read|heard} about <np>; what do you know about <np>?; how does <np> work?; how
do i use <np>?; how about <np>?; {any|some} {information|hint|hints|tips} on <np>?; i have a question about <np>;
describe <np>; where can i find <np>?; where do i find <np>?; my {boss|friend|colleague} asked about <np>; talk about
<np>; {who|how} can i ask about <np>?; <np> - how?; let's talk about <np>; i'm curious about <np>; i wonder about <np>;
could you say something about <np>?; i do not understand <np>; i don't understand <np>; what does <np> mean?; {is|are}
<np> possible?; what would you say about <np>?; i need to know about <np>; i want to learn about <np>; teach me about
<np>; give me <np>; <np> pls; <np> plz; {gimme|lemme see|wanna have|gotta have|need} <np>; <np>{, how| how|, please| now|, explain|
- explain|, what is that|, is that possible|, any|, where}; {got|no|any} <np>?; {whats|wtf is|what the hell is} <np>; {<np>: yes or
no|<np>, yes or no}; {where's|wheres|how's|hows} <np>; {the manual|the help|somebody} {mentions|says something about} <np>;
{is there|there must be} {something like|anything like} <np>; {i've never|never} used <np>; {just|only} <np>; {the thing
with|the part about|the deal with} <np>; {need info on|keyword|topic|subject}: <np>; {can you|can u} {explain|do} <np>
"""

BEFORE = """
quick question:; one question:; hi,; hello,; hey,; hello!; hi!; ok,; so,; well,; excuse me,; sorry,; please:; good
morning,; hey there,; question:; next:; thanks.; great.; and; also,; but; now; i am new here.; i'm new to this.; i just
started.; i am lost.; i tried everything.; i'm confused.; i have a problem.; i am on linux.; i'm on a mac.; i use
windows.; my friend told me about this.; at work we use this.; sorry to bother you,; maybe you know:; i looked
everywhere.; i read the manual.; it is late and i am tired.; i need this for school.; my boss is waiting.; no idea.;
hmm,; um,; oh,; actually,; listen,; tell me,; say,; dear assistant,; hi <person> here,; i live in <place>.; my name is
<person>.; yesterday it worked.; i forgot.; today i try ossrun.; with ossrun,; in ossrun,; using ossrun,; on <place>
time,; stupid question maybe:; another thing:; by the way,; for my <w> project,; i work on <w>.; i like <w>.; first,;
then,; finally,; honestly,; ok thanks.; i see.; for a friend:; if possible,; once again:; i'm curious,; imagine i am a
beginner.; yo,; dude,; bro,; mate,; pls,; plz,; ok so; right,; alright,; hmm ok,; well well,; dear sir,;
hey bot,; my {<family>|boss|team} and i talk a lot about it.; i got {a new laptop|a server|this machine} {last week|yesterday|
from work}.; i spent {all evening|hours|two hours} on this.; we are a small {company|team|school} in <place>.; i'm not a
{programmer|techie|computer person}.; long story short,; i came home and {opened the terminal|sat down}.; i'm writing a <w>
app and; i am a {student|teacher|nurse|writer|developer|sysadmin|grandfather}.; it's my first {day|time|week} {with this|here}.;
coming from {ollama|chatgpt|another tool},; so basically,; tldr
"""
AFTER = """
please; please?; thanks; thanks!; thank you; thank you!; with ossrun; with ossrun?; in ossrun; in ossrun?; using
ossrun; here; here?; on linux; on my computer; on windows; on a mac; exactly; exactly?; i am stuck; i'm new here; any
idea?; can you help?; is that possible?; how?; , how?; - how does that work?; ?; ??; !; ...; for me; right now; today;
quickly; again; in short; for my <w> project; , i forgot; and why; or not; , do you know?; , tell me; what do i do;
what do i type?; what command?; cheers; asap; if possible; for a beginner; with this tool; from the terminal; now; , i
can't find it; , help; , right?; correct?; you know; in general; pls; plz; thx; pls help; asap pls; lol; bro; mate; dude; , please and thank you; -
any hints?; . i'm a beginner.; . it's for my <w> project.; . my {boss|<family>} needs it {today|tomorrow}.; . can't find it in the
docs.; . thanks a lot!; (i'm new); , is there a flag?; , is there a command?; or is that not possible; somehow; at all; these days
"""

# ---- topics that the model must decline ------------------------------------------------------------------------------
OTHER_VP = """
{cook|bake|fry|boil|prepare|make|eat|grill|roast} {<item>|an egg|eggs|rice|pasta|a cake|bread|a
turkey|soup|dinner|potatoes|pancakes|a steak|vegetables|a pie}; {learn|study|understand|practice|teach}
{<w>|french|chinese|guitar|chess|swimming|mathematics|physics|programming|drawing|history|latin};
{fix|repair|clean|paint|sell|buy|rent|insure|wash|build|replace} {my|a|the|our}
{bike|car|house|roof|shoes|watch|window|boat|phone screen|kitchen|fence|door|washing
machine|table|sink|engine|garden|bathroom|sofa}; {write|compose|create|draft|finish} {a|an|my|the}
{poem|story|song|novel|essay|letter|speech|joke|cover letter|resume|blog post|book report|love letter|thesis|python
program|website|regex|sql query|sorting algorithm|javascript function|shell script that renames photos|game in
rust|haiku}{| about <w>| on <w>| for my <family>|}; {travel|fly|drive|move|go|get} to {<place>|the moon|the airport|my
<family>}{| by train| cheaply| next week|}; {lose weight|gain muscle|sleep better|quit smoking|get rich|find a
job|make friends|save money|grow tomatoes|train my dog|plant a tree|get married|raise children|run a marathon|stop
crying|be happy|pay less tax|file my taxes|plan a wedding|celebrate my birthday|tie a tie|cut my hair|serve wine|serve
a tennis ball|pull a tooth|pull weeds|sow seeds|run faster|host a party|chat up girls|exit the highway|cool my room};
{solve|prove|compute|calculate|simplify|integrate} {x squared plus 3 x|an equation|the integral of x|a riddle|a
sudoku|this equation|the fermat theorem|2 x + 5 = 11|a quadratic equation|pi}; {treat|cure|heal|prevent} {a cold|<w>|a
headache|cancer|back pain|a burn|the flu|fever|depression|a cough}; {translate|say|spell|pronounce} {<w>|good
morning|i love you|thank you|this sentence|where is the hotel|cheers} in
{french|german|spanish|italian|latin|chinese|japanese|russian|greek|polish}; {choose|find|recommend|compare|book}
{a|the best|a good|a cheap|some} {hotel|restaurant|laptop|phone|car|movie|book|gift|school|doctor|present for my
<family>|wine|tv|bicycle|camera|game|song|flight}{| in <place>| for my <family>|}; {explain|describe|summarize}
{<w>|the {theory|history} of <w>|the plot of a novel|a movie|the bible|hamlet|quantum mechanics|relativity|the french
revolution|the news}; {invest in|trade|sell|buy} {stocks|bitcoin|gold|houses|<item>|bonds};
{debug|refactor|test|review} my {java|c++|go|rust|python|php} {code|program|function|project}; {sort|reverse} a
{list|string|array} in {python|java|go|c|rust|javascript};
{install|update|uninstall|configure|use|buy|open|crack|download}
{photoshop|docker|windows|excel|word|postgres|nginx|firefox|minecraft|a printer|whatsapp|zoom|an
antivirus|blender|git|npm|kubernetes|spotify|steam|a browser}{| on my <family>'s pc|};
{format|partition|defragment|encrypt} {a|my} {disk|usb stick|drive|card}; {convert|edit|cut|compress|print|scan}
{a|my|some} {video|photo|picture|mp3|pdf|movie|song|scan}{| to mp4| for my <family>|};
{connect|pair|reset|repair|charge} my {router|printer|phone|headphones|tv|keyboard|mouse|watch|tablet}{| to the
wifi|}; {delete|close|recover|open} my {facebook|instagram|google|bank|netflix|twitter|email} {account|password|page};
{win|play|beat} {at|in|} {chess|poker|tetris|football|the lottery|monopoly}; {call|phone|reach|text} my
{<family>|bank|doctor|boss|landlord}; {order|eat|deliver|get} {a pizza|sushi|a taxi|flowers|a burger|<item>};
{train|feed|walk|wash|teach|name} my {dog|cat|horse|parrot|baby|rabbit}; {learn|improve|practice} {my|}
{english|german|cooking|typing|singing|piano|spelling}
"""

OTHER_NP = """
{the|a}
{history|meaning|origin|price|age|color|size|future|importance|definition|beauty|life|weight|speed|temperature|height|
population|capital|president|king|language|currency|flag|weather|food|name|inventor|author|director|population
density|area|culture|religion|climate|economy} of {<w>|<place>|<person>|the <w>|a <w>|{the|a} <adj> <w>};
{the|a|some|my} <adj> {<w>|<item>}; <w>; <w> and <w>; {the|a} <w>; <person>; <place>; the {moon|sun|president|french
revolution|roman empire|bible|olympics|stock market|universe|big bang|cold war|second world war|mona lisa|eiffel
tower|weather|news|football game|world cup|black hole}; {a|the|some}
{recipe|joke|poem|story|song|riddle|fact|quote|game|present|movie|book|hotel|restaurant|diet|workout|travel
plan|shopping list|name}{| for <w>| about <w>| for my <family>| with <item>| in <place>|};
{life|love|death|happiness|god|time travel|consciousness|beauty|truth|war|justice|freedom|the meaning of
life|evolution|gravity|electricity|photosynthesis|inflation|democracy|capitalism|dna|vaccines|dreams|climate
change|dark energy|black holes|ghosts|aliens|dinosaurs|volcanoes|magnets|rainbows}; my
{<family>|dog|cat|boyfriend|girlfriend|job|boss|health|stomach|back|teeth|homework|exam|birthday|car|garden|neighbor|
house|holiday};
<person> {and|or} <person>; {a fashion model|a tennis serve|the seed of a flower|room temperature|a bench in the
park|human memory|a restaurant server|a sea port|the token ring|harmony in music|a muscle pull|a driving license|a chat
with my <family>|the key of my house|a car device|the context of a poem}
"""

OTHER_Q = """
{who is|who was|tell me about|what did} <person>{| do| write| invent| say}; {who|what}
{invented|discovered|won|wrote|built|painted|founded|directed|composed|killed} {the |}{<w>|mona lisa|telephone|last
world cup|ninth symphony|light bulb|pyramids|penicillin|super bowl|star wars|faust|romeo and juliet|airplane|<adj>
<w>|nobel prize last year|iphone}; {write|compose|make|create} {a|me a|a short|a long|an}
{poem|story|song|joke|essay|email|letter|tweet|haiku|speech|recipe|limerick|rap|ballad} {about|for|on} {the |my |a
|}{<w>|<w> and <w>|<person>|<place>|<adj> <w>|my <family>|a <adj> <w>}; {tell me|do you know|give me} {a|another}
{joke|story|secret|fact|riddle|fairy tale|poem|quote}{| about <w>| about <person>| about a <adj> <w>| for children|};
{translate|how do you say} {"<w>"|hello|good morning|this|the word <w>|"i love <w>"|'my <adj> <w>'} {in|into|to}
{french|german|spanish|chinese|latin|japanese|italian|russian|greek|dutch|korean|arabic}; {write|give me|show me}
{code|a program|a function|a script|an algorithm|a python function|a javascript function|a class|a query}
{that|to|which} {sorts|reads|prints|finds|counts|computes|removes|reverses|sums|validates} {a |the |all
|}{<w>|numbers|strings|a list|prime numbers|duplicates|emails|a tree}{| in python| in go| in c| in rust| in java|};
{why|how|when|where} {is|are|was|were|do|does|did|can} {the |a |}{<w>|<adj> <w>|<person>|<place>|people|birds|we|cats}
{work|so big|blue|important|happen|expensive|made|end|begin|grow|dangerous|so
<adj>|exist|die|sleep|live|fly|famous|sing|dream|float|burn|move|born}; {what|which} {is the best|is the biggest|is the
nearest|is a good|is your favorite|is the most <adj>|is the oldest|is the longest|is the highest|is the smallest|is the
fastest} {<w>|<w> in <place>|river|mountain|city|animal|country|movie|color|food|book|planet|building}{| in the world|
on earth| ever|}; {should i|can i|could i|may i|must i}
{buy|eat|sell|read|learn|visit|drink|cook|watch|marry|call|wear|trust|kiss|feed} {a |the |my
|}{<w>|<item>|<person>|<adj> <item>|dog}{| today| tomorrow| now|}; {how old|how tall|how far|how big|how rich|how
heavy|how long|how deep|how high|how hot|how fast} is {<person>|<place>|the <w>|a <w>|the moon|mount everest|the
sun|the ocean|an elephant|a cheetah|the nile|the <adj> <w>}; <w>; <w> {and|or|of|with|in|for} <w>; {i like|i love|i
hate|my favorite is|i think about|i have|i saw|i feel|i am afraid of|i miss|i dreamed of} {the |a |my |}{<w>|<adj>
<w>|<person>|<item>|<place>}; {can you|could you|please|will you}
{summarize|explain|find|book|order|draw|improve|review|sing|paint|proofread|translate|correct|recommend|buy|cook|
imagine|rewrite|design}
{the |my |a |this |me a |}{<w>|<adj>
<w>|text|essay|letter|story|song|picture|logo|email|article|movie|plan|recipe|flight}; {what should|what could|what
can} {i|we} {eat|wear|read|watch|do|cook|learn|drink|play|buy|give my <family>|say to my <family>|visit}
{today|tonight|tomorrow|in <place>|for dinner|on sunday|this weekend|for breakfast|for my birthday}; {is|are} {the
|}{<w>|<item>|<person>|<place>|ghosts|aliens|cats} {good|bad|real|dangerous|healthy|expensive|alive|better than
<w>|<adj>|true|far away|popular|legal|married}; {compare|what is the difference between} {the
|}{<w>|<item>|<place>|<person>} {and|with} {the |}{<w>|<item>|<place>|<person>}; my
{<family>|dog|cat|boss|friend|neighbor|head|back|stomach|car|bike|knee} {is sick|hurts|is angry with me|ate <item>|does
not like <w>|lost his <item>|is sad|wants a <item>|broke|left me|is crying|has a fever|won't start|loves <w>}{|, what
now|, what should i do|, what can i do|, help|, is that bad|}; {what happened|who ruled|who was king|what was
invented|who won} in {1066|1492|1789|1815|1914|1945|1968|1969|1990|2001|2010|{|<place> in }19$D|18$D}; {what
are|name|list|give me} {three|five|ten|some|a few|the best|two|all} {<w>|<adj> <w>|<item>|names for a
{cat|dog|baby|shop|cafe|band|boat|team}|ideas for a {party|gift|story|trip|logo}|tips against <w>|facts about
<w>|countries in europe|planets|movies|books about <w>|reasons to love <w>|synonyms for <adj>|cities in <place>}; plan
{a|my|our} {trip|holiday|party|weekend|week|wedding|menu|journey|vacation|tour|dinner} {to|in|for|with|through}
{<place>|my <family>|<person>|ten people}; {do you like|do you want|have you seen|have you been to|do you believe
in|can you feel} {<w>|<item>|<place>|<person>|god|ghosts|music|love}; {who|what|where|when} {is|was} {the
|}{<w>|<person>|<place>|president of <place>|king of <place>|queen of <place>|capital of <place>|<adj> <w>|prime
minister of <place>|inventor of <w>|author of <w>}; {i feel|i am|i'm|we are} {sad|lonely|hungry|bored|tired|sick|in
love|angry|happy|cold|afraid|stressed|pregnant|drunk|thirsty}{|, what can i do|, help me|, cheer me up|}; {i have|i've
got|i get} {a headache|back pain|fever|a cold|toothache|a rash|an exam|a bad dream|a sore throat|heart pain|an
allergy}{| since yesterday| every day| again| since last week|}{|, what now|, what should i take|, is it bad|}
"""

# the same, but close to what functions or python answer: only used when no tools are offered
OTHER_Q_TOOLS = """
{what is|what was|what's|how is} the {weather|time|temperature|news|price of <w>|stock
price|date|score|distance|forecast|exchange rate} {in|for|at} <place>{?| today?| now?| tomorrow?}; {is it|will it be}
{raining|sunny|cold|warm|snowing} in <place>{| today| tomorrow|}; what time is it{| in <place>|}; {what is|what's} the
{capital|population|history|language|president|flag|currency|area} of <place>; how far is <place> from <place>; call
<person>; {set|start} {a timer|an alarm} for <num> minutes; how many people live in <place>; search the web for <w>;
what day is {it|today|tomorrow}; what is the date today; will it rain {today|tomorrow|on sunday}; turn on the light
"""

FAMILY = (
    "mother father sister brother wife husband son daughter uncle aunt grandmother grandfather family kids parents"
    " baby".split()
)
VP_FRAMES, NP_FRAMES, BEFORE, AFTER = map(lines, (VP_FRAMES, NP_FRAMES, BEFORE, AFTER))
OTHER_VP, OTHER_NP, OTHER_Q, OTHER_Q_TOOLS = map(lines, (OTHER_VP, OTHER_NP, OTHER_Q, OTHER_Q_TOOLS))
_BRACE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"<([a-z]+)>")


def one_word(r):
    """A topic word: mostly from the list of nouns, else any common English word that no intent uses."""
    return r.choice(WORDS) if r.random() < 0.7 else r.choice(COMMON)


SLOTS = {
    "w": one_word,
    "adj": lambda r: r.choice(ADJECTIVES),
    "item": lambda r: r.choice(ITEMS),
    "place": lambda r: r.choice(PLACES),
    "person": lambda r: r.choice(PEOPLE),
    "family": lambda r: r.choice(FAMILY),
    "num": lambda r: str(r.randint(0, r.choice([20, 999, 9999]))),
}


def expand(r, s):
    """Expand macros, slots and the innermost braces first until nothing is left."""
    while True:
        t = _NAME.sub(
            lambda m: SLOTS[m[1]](r) if m[1] in SLOTS else "{" + MACROS[m[1]] + "}" if m[1] in MACROS else m[0], s
        )
        t = _BRACE.sub(lambda m: r.choice(m[1].split("|")), t)
        if t == s:
            break
        s = t
    s = s.replace("$D", f"{r.randint(0, 99):02d}")
    return re.sub(r" ([,?.!])", r"\1", re.sub(r" +", " ", s)).strip()


def doubt(phrases):
    """How often each of them is drawn, against 1 for one that is never understood."""
    return [0.12 + 0.88 * min(1, DOUBT[x]) if x in DOUBT else 0.4 for x in phrases]


def pick(r, phrases):
    return r.choices(phrases, doubt(phrases))[0] if DOUBT else r.choice(phrases)


def in_frame(r, vp, np, q):
    """One sentence from verb phrases, noun phrases or whole questions."""
    kinds = [k for k, have in (("q", q), ("vp", vp), ("np", np)) if have]
    kind = r.choices(kinds, [{"q": WHOLE[0], "vp": 4, "np": 2}[k] for k in kinds])[0]
    if kind == "q":
        return expand(r, pick(r, q)) + r.choice(["?", "", "?", "", ".", "?"])
    phrase = expand(r, pick(r, vp if kind == "vp" else np))
    frame = r.choice(VP_FRAMES if kind == "vp" else NP_FRAMES)
    if "<ving>" in frame:
        first, _, rest = phrase.partition(" ")
        phrase, frame = f"{gerund(first)} {rest}".strip(), frame.replace("<ving>", "@")
    frame = expand(r, frame.replace("<vp>", "@").replace("<np>", "@"))
    if kind == "np" and r.random() < 0.15:
        phrase = re.sub(r"^(the|a|an|some) ", "", phrase)
    return frame.replace("@", phrase)


def gerund(verb):
    """download -> downloading, use -> using, get -> getting."""
    if not verb.isalpha() or verb.endswith("ing"):
        return verb
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "be")):
        return verb[:-1] + "ing"
    double = re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb)
    return verb + (verb[-1] if double else "") + "ing"


SHORT_FORMS = [
    (re.compile(rf"\b{a}\b"), b.split("|"))
    for a, b in {
        "what's": "whats|what is",
        "i'm": "im",
        "don't": "dont|do not",
        "doesn't": "doesnt",
        "can't": "cant|cannot",
        "please": "pls|plz",
        "thanks": "thx",
        "you": "u",
        "your": "ur",
        "are": "r",
        "because": "bc|cuz",
        "want to": "wanna",
        "i have to": "gotta",
        "let me": "lemme",
        "give me": "gimme",
        "and": "&|n",
        "without": "w/o",
        "with": "w/",
        "something": "sth",
        "somebody": "sb",
        "computer": "pc",
        "question": "q",
        "tonight": "2nite",
        "is it": "is that|it's|is this",
        "do i": "do we|does one|should i|would i|must i",
        "my": "our|the|this",
        "the": "|that|this",
        "how do i": "how|how 2|how to",
    }.items()
]


def slang(r, s):
    """Some of the short forms that people type."""
    for pattern, forms in SHORT_FORMS:
        if r.random() < 0.35:
            s = pattern.sub(lambda _: r.choice(forms), s)
    return re.sub(r" +", " ", s).strip()


def scatter(r, s, p):
    """Put common words between the words, or drop some, or swap two: the topic's words must be enough."""
    out = []
    for w in s.split():
        if r.random() < p:
            out.append(r.choice(COMMON))
        if r.random() >= p / 4 or w.startswith("-") or any(c.isdigit() for c in w):
            out.append(w)
    if len(out) > 3 and r.random() < 0.1:
        i = r.randrange(len(out) - 1)
        out[i], out[i + 1] = out[i + 1], out[i]
    return " ".join(out)


def typo(r, s):
    """One slip of the finger in one longer word."""
    words = s.split(" ")
    long = [i for i, w in enumerate(words) if len(w) > 4 and w.isalpha()]
    if long:
        i = r.choice(long)
        w, k = words[i], r.randrange(1, len(words[i]) - 1)
        words[i] = r.choice([w[:k] + w[k + 1 :], w[:k] + w[k + 1] + w[k] + w[k + 2 :], w[:k] + w[k] + w[k:]])
    return " ".join(words)


def style(r, s, tame=False):
    """How people type: context around the question, capitals, punctuation, typos."""
    if not tame and r.random() < 0.22:
        s = expand(r, r.choice(BEFORE)) + " " + s
    if not tame and r.random() < 0.15:
        tail = expand(r, r.choice(AFTER))
        s = s.rstrip("?.!") + ("" if tail[0] in ",?!." else " ") + tail
    if r.random() < 0.5:
        s = re.sub(r"(^|[.!?] )([a-z])", lambda m: m[1] + m[2].upper(), s)
        if r.random() < 0.7:
            s = re.sub(r"\bi\b", "I", s)
    elif r.random() < 0.03:
        s = s.upper() if not tame else s
    if r.random() < 0.25:
        s = s.rstrip("?.!")
    elif s and r.random() < 0.2 and s[-1].isalnum():
        s += r.choice(".!?.")
    if not tame and r.random() < 0.12:
        s = typo(r, s)
        if r.random() < 0.25:
            s = typo(r, s)
    return s


def ask_intent(r, name):
    """-> (question, values) for an intent of facts.py; $P is one random number for question and answer alike."""
    t = INTENTS[name]
    s = in_frame(r, t["vp"], t["np"], t["q"])
    small = name in ("greet", "thanks", "bye")
    if not small and r.random() < TWICE[0]:
        s = s.rstrip("?.!") + r.choice([", ", ". ", " - ", "? ", ": ", " "]) + in_frame(r, t["vp"], t["np"], t["q"])
    if r.random() < SYNONYMS[0]:
        s = other_words(r, s, r.choice([0.3, 0.6]))
    if r.random() < 0.15:
        s = slang(r, s)
    if not small and r.random() < 0.15:
        s = scatter(r, s, r.choice([0.1, 0.2, 0.35]))
    s = style(r, s, tame=small and r.random() < 0.7)
    if r.random() < PROPER[0]:
        s = proper(s)
    port = str(
        r.choice(
            [r.randint(1024, 9999), r.randint(1024, 9999), r.randint(10000, 65000), 80, 443, 3000, 5000, 8080, 9000]
        )
    )
    return s.replace("$P", port), port


def ask_other(r, tools=False):
    """A question that has nothing to do with ossrun."""
    x = r.random()
    if x < 0.08:
        s = " ".join(one_word(r) for _ in range(r.randint(2, 9)))
    else:
        q = OTHER_Q + ([] if tools else OTHER_Q_TOOLS)
        s = in_frame(r, OTHER_VP, OTHER_NP, q if x < 0.95 else OTHER_Q)
        s = s.replace("ossrun", r.choice(["one", "a machine", "a person"]))
        if r.random() < SYNONYMS[0]:
            s = other_words(r, s, r.choice([0.3, 0.6]))
        if r.random() < 0.12:
            s = scatter(r, s, r.choice([0.1, 0.2, 0.35]))
        if r.random() < 0.15:
            s = slang(r, s)
    s = style(r, s)
    return proper(s) if r.random() < PROPER[0] else s
