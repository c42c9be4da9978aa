"""Arithmetic for the python tool in the training dialogues: questions, expressions and what python prints."""

from names import ITEMS, PEOPLE
from phrases import expand


def ask_python(r):
    """-> (question, expression, what python prints)."""
    num = lambda: r.randint(0, r.choice([9, 20, 99, 99, 999, 999, 9999]))
    kind = r.choices(["two", "percent", "root", "power", "three", "story"], [0.56, 0.08, 0.06, 0.08, 0.1, 0.12])[0]
    a, b, c = num(), num(), num()
    if kind == "two":
        op = r.choice("+-**/")
        b = b or 7
        e = f"{a} {op} {b}"
        words = {
            "+": f"{a} plus {b};the sum of {a} and {b};{a}+{b};{e};{a} and {b} added together;{a} added to {b}",
            "-": f"{a} minus {b};{a}-{b};{e};{a} less {b};the difference of {a} and {b}",
            "*": (
                f"{a} times {b};{a}*{b};{a} x {b};the product of {a} and {b};{e};{a} multiplied by {b};{a} multiplied"
                f" with {b}"
            ),
            "/": f"{a} divided by {b};{a}/{b};{e};{a} over {b};{a} split in {b} parts;the quotient of {a} and {b}",
        }[op]
        if "added to" in words and r.random() < 0.5:
            words = words.rsplit(";", 1)[0]
        w = r.choice(words.split(";"))
        if op == "+" and w.endswith(f"added to {b}"):
            e = f"{a} + {b}"
        do = {
            "+": f"add {a} and {b};add {a} to {b};sum up {a} and {b};add up {a} and {b}",
            "-": f"subtract {b} from {a};take {b} away from {a};take {b} from {a};reduce {a} by {b}",
            "*": f"multiply {a} by {b};multiply {a} with {b};multiply {a} and {b}",
            "/": f"divide {a} by {b};split {a} by {b}",
        }[op].split(";")
        if r.random() < 0.25:
            return (
                style_sum(
                    r,
                    expand(
                        r,
                        r.choice(
                            [
                                "{|please |can you |could you |now |what if i }@{| please|?|}",
                                (
                                    "{what do i get|what is it|what comes out|what is the result|how much is it} {if"
                                    " i|when i|if we|if you} @{?|}"
                                ),
                            ]
                        ),
                    )
                    .replace("@", r.choice(do))
                    .replace("?.", "?"),
                ),
                e,
                show_number(e),
            )
    elif kind == "percent":
        a, b = r.randint(1, 100), num()
        e, w = f"{a} / 100 * {b}", r.choice([f"{a} percent of {b}", f"{a}% of {b}", f"{a} % of {b}"])
    elif kind == "root":
        e, w = f"{a} ** 0.5", r.choice(
            [f"the square root of {a}", f"square root of {a}", f"sqrt({a})", f"the root of {a}", f"sqrt {a}"]
        )
    elif kind == "power":
        a, b = r.randint(0, 99), r.randint(2, 20)
        e, w = f"{a} ** {b}", r.choice(
            [
                f"{a} to the power of {b}",
                f"{a} to the power {b}",
                f"{a}^{b}",
                f"{a} ** {b}",
                f"{a} raised to {b}",
                f"{a} to the {b}th power",
            ]
        )
        if r.random() < 0.3:
            e, w = f"{a} ** 2", f"{a} squared"
    elif kind == "three":
        op, op2 = r.choice([("+", "+"), ("+", "+"), ("+", "-"), ("*", "+"), ("*", "*"), ("-", "-"), ("+", "*")])
        e = f"{a} {op} {b} {op2} {c}"
        w = r.choice([e, e.replace(" ", ""), e.replace("+", "plus").replace("-", "minus").replace("*", "times")])
        if op == op2 == "+" and r.random() < 0.6:
            w = r.choice(
                [f"the sum of {a}, {b} and {c}", f"{a}, {b} and {c} together", f"the total of {a}, {b} and {c}"]
            )
            if r.random() < 0.5:
                return (
                    style_sum(
                        r,
                        r.choice(
                            [
                                f"add {a}, {b} and {c}",
                                f"sum {a}, {b} and {c}",
                                f"add up {a}, {b} and {c}",
                                f"add the numbers {a}, {b} and {c}",
                                f"please add {a}, {b} and {c}",
                            ]
                        ),
                    ),
                    e,
                    show_number(e),
                )
    else:
        x, box, name = (
            r.choice(ITEMS),
            r.choice("boxes bags packs crates baskets rows shelves trucks tables bottles days weeks rooms".split()),
            r.choice(PEOPLE),
        )
        owns = ["i have", "there are", "we have", "i bought", name + " has", "if i have", "if there are"]
        owns += ["if you have", "i get"]
        e, w = r.choice(
            [
                (
                    f"{a} * {b}",
                    (
                        f"{r.choice(owns)}"
                        f" {a} {box} {r.choice(['with', 'of', 'and'])} {b} {x}"
                        f" {r.choice(['each', 'in each', 'per ' + box.rstrip('s')])}{r.choice([',', '.'])} how many"
                        f" {x} {r.choice(['is that', 'are there', 'do i have', 'in total', 'are that', 'together'])}"
                    ),
                ),
                (f"{a} * {b}", f"one {x.rstrip('s')} costs {a} dollars, what do {b} cost"),
                (
                    f"{a} + {b}",
                    (
                        f"{r.choice(['i have', name + ' has', 'there are'])} {a} {x} and"
                        f" {r.choice(['buy', 'get', 'find', name + ' gives me'])} {b} more, how many"
                        f" {r.choice(['is that', 'are there', 'do i have now', 'in total'])}"
                    ),
                ),
                (
                    f"{a} - {b}",
                    (
                        f"{r.choice(['i have', 'i had', name + ' had', 'there were'])} {a} {x} and"
                        f" {r.choice(['lose', 'sell', 'eat', 'give away', 'sold', 'lost'])} {b}, how many"
                        f" {r.choice(['are left', 'remain', 'do i still have', 'are still there'])}"
                    ),
                ),
                (
                    f"{a} / {b or 3}",
                    (
                        f"{r.choice(['share', 'split', 'divide'])} {a} {x} {r.choice(['among', 'between', 'by'])}"
                        f" {b or 3}"
                        f" {r.choice(['friends', 'people', 'children', 'persons'])}"
                        f"{r.choice(['', ', how many does each get'])}"
                    ),
                ),
            ]
        )
        return style_sum(r, w + r.choice(["?", ""])), e, show_number(e)
    q = expand(
        r,
        r.choice(
            [
                (
                    "{what is|what's|calculate|compute|how much is|tell me|please calculate|can you"
                    " compute|solve|find|evaluate|work out|what are|give me|i need|determine|could you"
                    " calculate|please work out|figure out|can you tell me|do you know|the result of|what do you get"
                    " for|i want to know|what does|help me calculate|quickly:|please compute|can you work out}"
                    " @{|?|.| please| for me|?}"
                ),
                "@{?| =| = ?||=?|=}",
            ]
        ),
    ).replace("@", w)
    return style_sum(r, q), e, show_number(e)


def style_sum(r, q):
    if r.random() < 0.5:
        q = q[0].upper() + q[1:]
    if r.random() < 0.1:
        q = r.choice(["hi, ", "Hello! ", "ok, ", "next: ", "and ", "Quick: ", "so ", "please: "]) + q
    return q


def show_number(e):
    try:
        return str(eval(e, {"__builtins__": {}}))
    except (ZeroDivisionError, OverflowError):
        return "error"
