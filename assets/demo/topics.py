"""Subjects of the functions in the training dialogues: how they are asked for, named and answered."""

from names import ADJECTIVES, ITEMS, PEOPLE, PLACES, WORDS

FREE_NAMES = [0.0]  # share of function and argument names that say nothing about the topic (second training phase)
NO_DESCRIPTION = [0.0]  # share of functions whose name says enough and that come without a description (last phase)
CITY = ["city", "location", "place", "town", "address", "region", "city_name", "where", "destination", "area", "loc"]
PERSON = ["name", "person", "user", "contact", "employee", "customer", "who", "full_name"]
ITEM = ["item", "product", "article", "thing", "goods", "keyword", "name", "product_name"]
SKY = "sunny cloudy rainy foggy windy snowy stormy clear overcast hazy humid dry".split() + [
    "light rain",
    "heavy snow",
    "clear sky",
    "thunderstorm",
    "partly cloudy",
    "snow",
    "rain",
    "storm",
    "fog",
    "sun",
]
ROOMS = [
    "kitchen",
    "bedroom",
    "bathroom",
    "office",
    "garage",
    "garden",
    "hall",
    "living room",
    "attic",
    "basement",
    "cellar",
    "nursery",
    "studio",
    "hallway",
]
CURRENCY = ["dollars", "euros", "yen", "pounds", "francs", "rupees", "pesos", "kroner"]
SONGS = [
    "jazz",
    "rock",
    "opera",
    "piano music",
    "folk songs",
    "blues",
    "techno",
    "classical music",
    "drums",
    "violin music",
]
UNITS = {"celsius": ["in celsius"], "fahrenheit": ["in fahrenheit"]}


def place(r):
    """Known places, and sometimes an invented one, so that copying does not depend on the list alone."""
    if r.random() < 0.12 + 0.2 * FREE_NAMES[0]:
        syl = (
            "ka lo mi ra ben tor vel sun mar din os an er ul ta no re li sa pol gar win sten ford ham bri dor fel"
            " wick mont burg ton".split()
        )
        return "".join(r.choice(syl) for _ in range(r.randint(2, 3))).capitalize()
    return r.choice(PLACES)


def query(r):
    words = [r.choice(WORDS if r.random() < 0.85 else ADJECTIVES) for _ in range(r.choice([1, 2, 2, 2, 3]))]
    return r.choice(ITEMS) if r.random() < 0.15 else " ".join(words)


VALUE = {
    "place": place,
    "person": lambda r: r.choice(PEOPLE),
    "item": lambda r: r.choice(ITEMS),
    "number": lambda r: r.randint(1, r.choice([12, 60, 180])),
    "amount": lambda r: r.randint(1, r.choice([20, 999, 9999])),
    "room": lambda r: r.choice(ROOMS),
    "onoff": lambda r: r.choice(["on", "off"]),
    "query": query,
    "money": lambda r: r.choice(CURRENCY),
    "song": lambda r: r.choice(SONGS + PEOPLE),
    "id": lambda r: r.randint(100, 99999),
}
NUMERIC = ("number", "amount", "id")


def sky_result(r):
    t, s = r.choice([r.randint(-20, 40), r.randint(0, 30), round(r.uniform(-9, 35), 1)]), r.choice(SKY)
    d = {
        r.choice(["temperature", "temp", "temp_c", "degrees", "celsius"]): t,
        r.choice(["sky", "condition", "weather", "summary", "description", "forecast"]): s,
    }
    if r.random() < 0.3:
        d = {r.choice(["sunny", "rain", "snow", "cloudy", "windy"]): r.choice([True, False]), "temperature": t}
    if r.random() < 0.3:
        d[r.choice(["wind", "humidity", "wind_speed", "pressure"])] = r.randint(1, 99)
    if r.random() < 0.2:
        d["unit"] = r.choice(["celsius", "fahrenheit", "C", "F"])
    plain = r.choice(
        [
            f"{t} C and {s}",
            f"{s}, {t}",
            f"{t} degrees, {s}",
            f"{s}, {t} C",
            f"{s} with {t} degrees",
            f"{t}°C, {s}",
            f"{s}",
            f"{s}, {t} degrees, wind {r.randint(1, 90)}",
            f"{s}, {t} C, humidity {r.randint(10, 99)}",
        ]
    )
    return d, plain


def simple(keys, draw, units=("",)):
    def result(r):
        v = draw(r)
        return {r.choice(keys): v}, str(v) + r.choice(list(units))

    return result


def clock(r):
    return f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}"


# topic: nouns of the name, [(kind, argument names)], ways to ask ($0 $1: values), descriptions, result,
# start of the answer
FUNCS = {
    "weather": (
        [
            "weather",
            "forecast",
            "temperature",
            "climate",
            "current_weather",
            "weather_report",
            "weather_forecast",
            "weather_info",
            "conditions",
        ],
        [("place", CITY)],
        (
            "{what is|what's|how is|tell me|check|show me|how's|give me|i need|find out} the {current"
            " |}{weather|temperature|forecast|weather like|weather forecast|weather report}{| right now| today}"
            " {in|for|at|over in|of} $0{| now| today| right now| please| tomorrow}; {is it|will it be|is it going to"
            " be} {raining|sunny|cold|warm|hot|snowing|windy|cloudy|dry|wet|foggy|stormy|nice|freezing} in $0{| now|"
            " today| tomorrow| this evening}; {do i need|should i take|should i pack|should i wear} {an umbrella|a"
            " jacket|sunglasses|a coat|boots|warm clothes|a hat} {in|for|when i go to} $0{| today| tomorrow};"
            " {weather|forecast|temperature|weather report} {in|for|of|at|} $0{| please| today| now}; $0"
            " {weather|forecast|temperature}{| please| today}; how {cold|warm|hot|windy|rainy} is it {in|over in|at}"
            " $0{| now| today| right now}; {does|will|can} it {rain|snow|storm|freeze|get hot} in $0{| today|"
            " tomorrow| now| tonight}; i {travel|go|fly|drive|move} to $0 {today|tomorrow|this evening|next"
            " week|now|tonight}{,|.} {how is the weather|is it warm|will it rain|what is the weather like|what should"
            " i wear|will it be nice|is it raining there|will it snow|how cold is it there}; {can you|could"
            " you|please} {check|look up|tell me|find out} {the weather|the forecast|the temperature|if it"
            " rains|whether it is sunny|whether it is cold|if it is warm} in $0{| please|}; {how|what} about the"
            " weather in $0; what does the sky look like in $0"
        ),
        (
            "Get the weather of a city.;Returns the current weather.;Weather and temperature at a location.;Current"
            " weather for a place;Get current weather;Weather forecast;Tells the weather;Gets the weather in the"
            " given location.;Look up the forecast for a town"
        ),
        sky_result,
        "The weather in $0:",
    ),
    "time": (
        ["time", "local_time", "clock", "current_time", "hour", "time_of_day", "world_clock", "local_clock"],
        [("place", CITY)],
        (
            "{what is|what's|tell me|check|give me|i need} the {time|local time|current time|exact time} in $0{| now|"
            " please| right now}; what time is it {in|over in|now in} $0{| now| please| right now}; {time|local"
            " time|clock|current time} {in|for|of} $0{| please| now}; {how late is it|which hour is it|how early is"
            " it} in $0{| now}; i {want|need|must} to {call|phone|meet} {someone|a friend|my boss|people} in $0{,|.}"
            " {what time is it there|which time do they have|what is the time there|how late is it there now}; is it"
            " {morning|night|evening|late|early} in $0{| now| already}; what {hour|time} {do they have|is it now} in"
            " $0; what does the {watch|clock} show in $0; $0 {time|local time|clock}{| please| now}"
        ),
        (
            "Get the local time of a city.;Returns the current time.;Local time at a place.;What time is it in a"
            " place;Current time;The clock of a city"
        ),
        simple(["time", "local_time", "current_time", "clock", "now", "hour"], clock, ("", "", " local time")),
        "The time in $0:",
    ),
    "population": (
        ["population", "inhabitants", "people_count", "census", "population_size", "residents"],
        [("place", CITY + ["country"])],
        (
            "{how many people|how many inhabitants|how many residents} {live in|are in|has|are there in} $0{| now|"
            " today}; {what is|what's|tell me|find|look up|give me} the {population|number of inhabitants|number of"
            " people|population size} {of|in} $0; population of $0; how {big|large} is the population of $0; $0"
            " {population|inhabitants}; {how populated|how crowded} is $0"
        ),
        (
            "Get the population of a place.;Number of people in a city or country.;Returns the"
            " inhabitants.;Population;How many people live somewhere"
        ),
        simple(
            ["population", "people", "inhabitants", "count"],
            lambda r: r.randint(1000, r.choice([99999, 9999999, 99999999])),
            ("", " people"),
        ),
        "The population of $0:",
    ),
    "phone": (
        ["phone", "phone_number", "contact", "telephone", "contact_number", "mobile_number", "telephone_number"],
        [("person", PERSON)],
        (
            "{what is|what's|find|tell me|give me|look up|search|i need} the {phone number|number|telephone"
            " number|mobile number|phone} of $0; {how can i|i want to|i need to|i must|i'd like to}"
            " {call|phone|reach|ring|contact|ring up} $0{|, what is the number|, which number|, what number do i"
            " dial}; {phone|phone number|telephone|number} {of|for} $0{| please}; do you have the {phone"
            " number|number} of $0; what number {has|does} $0{| have}; which number {must i dial|do i call} to"
            " {reach|get|call} $0; {get|find} me {$0's|the} number{| of $0}; $0's {phone number|number|telephone}{|"
            " please}"
        ),
        (
            "Get the phone number of a person.;Look up a contact.;Returns the telephone number.;Phone number;Find the"
            " number of somebody"
        ),
        simple(
            ["phone", "number", "phone_number", "telephone"],
            lambda r: f"{r.choice(['555', '030', '044', str(r.randint(100, 999))])}-{r.randint(0, 9999):04d}",
        ),
        "The number of $0:",
    ),
    "age": (
        ["age", "birthday", "birth_date", "years", "person_age"],
        [("person", PERSON)],
        (
            "how old is $0{| now| today}; {what is|what's|tell me|find|give me} the age of $0; age of $0; how many"
            " years old is $0{| now}; what age {has|is} $0; is $0 {old|young}; when was $0 born"
        ),
        "Get the age of a person.;Age in years.;Returns how old someone is.;Age;How old a person is",
        simple(["age", "years"], lambda r: r.randint(1, 99), ("", " years")),
        "The age of $0:",
    ),
    "price": (
        ["price", "cost", "product_price", "offer", "item_price", "price_tag", "shop_price"],
        [("item", ITEM)],
        (
            "{what is|what's|tell me|find|check|look up|give me|i need} the {price|cost|current price} {of|for} $0{|"
            " now| today}; how much {is|are|does|do|for} $0{| cost| now}; {price|cost} {of|for} $0{| please}; what"
            " {does|do|would|will} $0 cost{| now| today| me}; {how expensive|how cheap} {is|are} $0{| now}; i want to"
            " buy $0{,|.} {how much|what does it cost|what is the price}; what {must|do|should} i pay for $0{| today|"
            " in the shop}; $0 {price|cost}"
        ),
        (
            "Get the price of a product.;Returns what an item costs.;Price of an item in dollars.;Price;What"
            " something costs in the shop"
        ),
        lambda r: (
            lambda v: (
                {
                    r.choice(["price", "cost", "amount", "total"]): v,
                    **({"currency": r.choice(["USD", "EUR", "CHF", "dollars"])} if r.random() < 0.4 else {}),
                },
                f"{v} {r.choice(['dollars', 'euros', 'USD', 'EUR', ''])}".strip(),
            )
        )(r.choice([round(r.uniform(1, 900), 2), r.randint(1, 2000), round(r.uniform(1, 90), 1)])),
        "The price of $0:",
    ),
    "timer": (
        ["timer", "alarm", "countdown", "reminder", "kitchen_timer", "egg_timer"],
        [("number", ["minutes", "duration", "length", "mins", "time", "duration_minutes"])],
        (
            "{set|start|make|create|add|run} {a|the|an|me a} {timer|alarm|countdown|reminder} {for|of|to|with} $0"
            " {minutes|min}{| please}; {remind|wake|call|alert} me {in|after} $0 {minutes|min}{| please}; $0"
            " {minutes|min|minute} {timer|alarm|countdown}{| please}; {timer|alarm|countdown} {for|of|} $0"
            " {minutes|min}; tell me when $0 minutes are over; {can you|could you|please} {set|start} {a|the}"
            " {timer|alarm} for $0 minutes; count {down |}$0 minutes; i need {a timer|an alarm} {in|for|of} $0"
            " minutes; wake me {up |}in $0 minutes"
        ),
        "Set a timer.;Starts a countdown of some minutes.;Set an alarm.;Timer;Remind the user after some minutes",
        None,
        "Done: the timer runs for $0 minutes.",
    ),
    "light": (
        ["light", "lamp", "room_light", "lights", "lamps", "room_lamp", "bulb"],
        [
            ("room", ["room", "area", "zone", "where", "room_name"]),
            ("onoff", ["state", "mode", "action", "status", "power"]),
        ],
        (
            "{turn|switch|put|make} $1 the {light|lights|lamp|lamps} in the $0{| please}; {turn|switch|put} the $0"
            " {light|lights|lamp} $1{| please}; {light|lights|lamp} $1 in the $0{| please}; {turn|switch|make} the"
            " {light|lights|lamp} in the $0 $1{| please| now}; the $0 {light|lamp} {should be|must be|must go} $1;"
            " {can you|could you|please} {turn|switch} the {light|lamp} {in|of} the $0 $1; $0 {light|lights|lamp} $1;"
            " i want the {light|lamp} in the $0 $1"
        ),
        "Turn a light on or off.;Switches the lamp of a room.;Control the lights.;Light control;Lamp on or off",
        None,
        "Done: the light in the $0 is $1.",
    ),
    "distance": (
        ["distance", "route", "travel_distance", "route_length", "road_distance", "trip_distance"],
        [
            ("place", ["from", "start", "origin", "from_city", "source", "city_a"]),
            ("place", ["to", "destination", "end", "target", "to_city", "city_b"]),
        ],
        (
            "{how far is it|what is the distance|how many kilometers is it|how many miles are there|what's the"
            " distance|how long is the road|how far} from $0 to $1; {distance|way|route|road|trip} from $0 to $1{|"
            " please}; {how far is|what is the distance between} $0 {and|from} $1; {how long is the way|i travel|i"
            " drive|i go|i walk|i fly|we drive|my trip goes} from $0 to $1{, how far is it|, how many kilometers|,"
            " what is the distance|, how many kilometers are that}; {distance|kilometers} between $0 and $1; {tell"
            " me|find|give me|compute} the distance {from|between} $0 {to|and} $1; how many kilometers {lie"
            " between|are between} $0 and $1; {starting|going} {in|from} $0, how far is $1"
        ),
        (
            "Get the distance of two places.;Distance in kilometers.;Returns how far it is.;Distance;Length of the"
            " road between two cities"
        ),
        simple(
            ["km", "distance", "kilometers", "distance_km", "length"],
            lambda r: r.randint(10, 15000),
            ("", " km", " kilometers"),
        ),
        "The distance from $0 to $1:",
    ),
    "search": (
        ["search", "web", "web_search", "internet", "google", "browser_search", "web_results"],
        [("query", ["query", "q", "text", "search_term", "keywords", "terms", "question"])],
        (
            "search {the web|the internet|online|google|} for $0{| please}; {google|look up|find|web search} $0{|"
            " online| on the web| for me| on the internet| please}; {can you|could you|please} search {the web |the"
            " internet |}for $0; find {something|information|news|pages|results} {about|on} $0 {on the web|online|on"
            " the internet}; {what does|what has} the {web|internet} {say|got} about $0; look for $0 {online|on the"
            " web|on the internet}; i want you to search for $0; do a {web |internet |}search for $0"
        ),
        "Search the web.;Web search.;Finds pages on the internet.;Searches for text online;Search engine",
        lambda r: (lambda v: ({r.choice(["result", "title", "top", "summary", "answer"]): v}, v))(
            r.choice(["found ", "", "all about ", "the best "]) + query(r)
        ),
        "The search for $0:",
    ),
    "news": (
        ["news", "headlines", "latest_news", "articles", "top_news"],
        [("query", ["topic", "subject", "theme", "category", "about"])],
        (
            "{what is|what's|tell me|show me|give me|any|are there|read me} {the |}{latest |new |today's"
            " |}{news|headlines} {about|on} $0{| today| please}; {news|headlines|latest news} {about|on|for} $0{|"
            " please| today}; what {is new|happened} {about|in|with|on} $0; $0 {news|headlines}{| please| today}"
        ),
        "Get the news about a topic.;Headlines.;Returns the latest news.;News on a subject",
        lambda r: (lambda v: ({r.choice(["headline", "news", "title", "top"]): v}, v))(
            query(r) + " " + r.choice(["are cheaper", "win", "lose", "grow", "are back", "sell well", "cost more"])
        ),
        "The news about $0:",
    ),
    "stock": (
        ["stock", "stock_price", "share_price", "quote", "share", "stock_quote"],
        [("company", ["company", "symbol", "ticker", "firm", "stock", "name"])],
        (
            "{what is|what's|tell me|check|give me|show me} the {stock price|share price|stock|stock quote} {of|for}"
            " $0{| now| today}; {stock price|share price|stock|shares} {of|for} $0{| please| now}; how {much is|is}"
            " {a share of|the stock of} $0{| doing| today| now}; {how does|how is} $0 {stock|shares} {do|doing}{|"
            " today}; $0 {stock|share price|stock price}{| please| today}; how are the shares of $0"
        ),
        "Get the stock price of a company.;Returns the share price.;Stock quote.;Price of a share",
        simple(
            ["price", "stock", "quote", "value", "last"],
            lambda r: round(r.uniform(5, 900), r.choice([1, 2])),
            ("", " dollars", " USD"),
        ),
        "The stock price of $0:",
    ),
    "order": (
        ["order", "order_status", "delivery", "shipment", "package", "parcel", "delivery_status"],
        [("id", ["order", "id", "order_id", "number", "order_number", "package"])],
        (
            "where is {my |the |}{order|package|parcel|delivery|shipment} {number |}$0{| now}; {what is|what's|tell"
            " me|check|give me|show me} the {status|state} of {my |the |}{order|package|parcel|delivery} {number"
            " |}$0; {track|check|find|look up} {my |the |}{order|package|parcel|delivery} {number |}$0{| please| for"
            " me}; {order|package|parcel} {number |}$0{| status}; {has|is} {order|package|parcel} $0 {arrived|been"
            " sent|been delivered|coming|late|there}{| yet| already}; when {does|will} {order|package|parcel} $0"
            " {come|arrive}"
        ),
        "Get the status of an order.;Where a package is.;Track a delivery.;Order status",
        simple(
            ["status", "state", "delivery"],
            lambda r: r.choice(
                ["shipped", "delivered", "on the way", "lost", "packed", "arrives tomorrow", "waiting", "sent"]
            ),
        ),
        "The order $0:",
    ),
    "restaurants": (
        ["restaurant", "restaurants", "food", "places_to_eat", "restaurant_guide", "dining"],
        [("place", CITY)],
        (
            "{find|show me|recommend|give me|search|book|i need|look for} {a|a good|the best|a cheap|an italian|a"
            " nice} {restaurant|place to eat|pizzeria|cafe} in $0{| please| tonight}; where can {i|we} {eat|have"
            " dinner|have lunch|eat well|get food} in $0{| tonight| today}; {restaurants|restaurant|dinner|places to"
            " eat} in $0{| please}; i am {hungry|starving} in $0; {is there|are there} {a good restaurant|good"
            " restaurants|nice places to eat} in $0; which restaurants are {there|good} in $0"
        ),
        "Find a restaurant in a city.;Restaurants.;Where to eat.;Restaurant guide",
        lambda r: (lambda v: ({r.choice(["name", "restaurant", "best", "place"]): v}, v))(
            r.choice(["Chez ", "Casa ", "Cafe ", "The Golden ", "Villa "])
            + r.choice(PEOPLE + ["Lion", "Garden", "House", "Moon"])
        ),
        "The restaurant in $0:",
    ),
    "convert": (
        ["convert_currency", "exchange", "currency", "exchange_rate", "money", "currency_converter"],
        [
            ("amount", ["amount", "value", "sum", "quantity"]),
            ("money", ["from", "from_currency", "source", "base"]),
            ("money", ["to", "to_currency", "target", "quote"]),
        ],
        (
            "{convert|change|exchange} $0 $1 {to|into|in} $2{| please}; {how much is|how much are|what is|what are}"
            " $0 $1 in $2{| now| today}; $0 $1 {in|to|into} $2{| please}; how many $2 {are|is|do i get for|for} $0"
            " $1; {i have|i want to change} $0 $1{,|.} {what is that in|how many are that in|how much is it in} $2;"
            " {give me|tell me} the value of $0 $1 in $2"
        ),
        "Convert money from one currency to another.;Currency exchange.;Converts an amount of money.;Exchange rate",
        simple(
            ["result", "amount", "value", "converted"],
            lambda r: r.choice([round(r.uniform(1, 9999), 2), r.randint(1, 99999)]),
        ),
        "$0 $1 in $2:",
    ),
    "play": (
        ["play", "music", "song", "play_music", "player", "radio", "playlist"],
        [("song", ["song", "artist", "music", "title", "track", "genre"])],
        (
            "play {some |me |me some |a song by |songs by |music by |a bit of |}$0{| please| now| for me}; i"
            " {want|would like|'d like} to {hear|listen to} {some |songs by |music by |}$0{| now}; {put on|start|turn"
            " on} {some |the music of |}$0{| please| now}; can you play {some |songs by |}$0{| for me| now}; {let me"
            " hear|let us hear} {some |}$0"
        ),
        "Play music.;Plays a song or artist.;Starts the music player.;Music",
        None,
        "Done: now playing $0.",
    ),
}
COMPANIES = (
    "Apple Google Microsoft Amazon Tesla Toyota Sony Samsung Intel Nvidia Adobe Oracle Siemens Boeing Airbus Shell"
    " Nestle Novartis Roche Ford Honda Nokia Ericsson Philips Disney Netflix Intel Cisco Visa Nike".split()
)
VALUE["company"] = lambda r: r.choice(COMPANIES)
