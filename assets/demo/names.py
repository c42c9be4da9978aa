"""Words the model must be able to read and copy: places, people, goods, topic words and common English words."""

import os

PLACES = """
Paris London Berlin Madrid Rome Vienna Zurich Geneva Basel Bern Oslo Stockholm Copenhagen Helsinki Dublin Lisbon Porto
Athens Warsaw Krakow Prague Budapest Bucharest Sofia Belgrade Zagreb Milan Naples Turin Venice Florence Munich Hamburg
Frankfurt Cologne Stuttgart Dresden Leipzig Amsterdam Rotterdam Brussels Antwerp Luxembourg Barcelona Valencia Seville
Bilbao Lyon Marseille Nice Bordeaux Toulouse Lille Edinburgh Glasgow Manchester Liverpool Birmingham Leeds Bristol
Oxford Cambridge Moscow Kiev Minsk Riga Tallinn Vilnius Istanbul Ankara Cairo Tunis Casablanca Lagos Accra Nairobi
Kampala Johannesburg Durban Dakar Dubai Doha Riyadh Tehran Baghdad Beirut Damascus Jerusalem Amman Kabul Karachi Lahore
Delhi Mumbai Bangalore Chennai Kolkata Pune Dhaka Colombo Kathmandu Bangkok Hanoi Singapore Jakarta Manila Beijing
Shanghai Shenzhen Guangzhou Taipei Seoul Busan Tokyo Osaka Kyoto Sapporo Nagoya Sydney Melbourne Brisbane Perth
Adelaide Auckland Wellington Honolulu Seattle Portland Denver Chicago Detroit Boston Philadelphia Baltimore Washington
Atlanta Miami Orlando Houston Dallas Austin Phoenix Oakland Nashville Memphis Charlotte Pittsburgh Cleveland Milwaukee
Toronto Montreal Vancouver Ottawa Calgary Havana Kingston Bogota Lima Quito Caracas Santiago Montevideo Brasilia
Reykjavik Lucerne Winterthur Gdansk Ghent Utrecht Malaga Granada Palermo Bologna Verona Nantes Bremen Hanover Bergen
Aarhus Uppsala Turku Sarajevo Odessa Tbilisi Baku Tashkent Almaty Hyderabad Jaipur Kobe Fukuoka Tucson Omaha Tampa
Lausanne Lugano Innsbruck Salzburg Graz Linz Trieste Genoa Bari Pisa Parma Nuremberg Bonn Mainz Freiburg Heidelberg
Rostock Kiel Potsdam Brno Ljubljana Bratislava Skopje Tirana Valletta Nicosia Izmir Antalya Tripoli Algiers Rabat
Marrakesh Khartoum Harare Lusaka Luanda Kigali Pretoria Medina Mecca Kuwait Muscat Mosul Isfahan Samarkand Multan Surat
Lucknow Nagpur Kochi Goa Agra Mandalay Saigon Penang Bali Cebu Macau Wuhan Chengdu Harbin Nanjing Tianjin Hiroshima
Nagasaki Darwin Hobart Canberra Cairns Christchurch Anchorage Spokane Boise Reno Sacramento Fresno Tulsa Wichita
Lincoln Minneapolis Madison Indianapolis Columbus Cincinnati Louisville Richmond Norfolk Raleigh Charleston Savannah
Jacksonville Birmingham Mobile Albany Buffalo Rochester Hartford Providence Newark Edmonton Winnipeg Halifax Quebec
Cancun Tijuana Guadalajara Monterrey Medellin Cali Guayaquil Cusco Rosario Cordoba Recife Salvador Fortaleza Manaus
France Germany Spain Italy Portugal Ireland England Scotland Norway Sweden Finland Denmark Poland Austria Switzerland
Hungary Greece Turkey Russia Ukraine Egypt Morocco Nigeria Kenya Ghana India China Japan Korea Vietnam Thailand
Indonesia Malaysia Australia Canada Mexico Brazil Argentina Chile Peru Colombia Cuba Israel Iran Iraq Pakistan Nepal
Iceland Belgium Netherlands Romania Bulgaria Serbia Croatia Mongolia Ethiopia Tanzania Uganda Angola Zimbabwe Bolivia
Ecuador Panama Jamaica Haiti Taiwan Cambodia Laos Myanmar Bangladesh Qatar Oman Yemen Jordan Syria Lebanon Tunisia
Algeria Libya Sudan Cyprus Malta Estonia Latvia Lithuania Slovakia Slovenia Georgia Armenia Texas California Florida
Alaska Hawaii Nevada Oregon Bavaria Tuscany Sicily Crete
""".split()
PLACES = list(dict.fromkeys(PLACES)) + [
    "New York",
    "San Francisco",
    "Los Angeles",
    "Las Vegas",
    "San Diego",
    "Mexico City",
    "Buenos Aires",
    "Rio de Janeiro",
    "Sao Paulo",
    "Hong Kong",
    "Tel Aviv",
    "Cape Town",
    "Kuala Lumpur",
    "Abu Dhabi",
    "New Delhi",
    "St. Gallen",
    "San Jose",
    "Salt Lake City",
    "New Zealand",
    "South Africa",
    "United States",
    "New Orleans",
    "Kansas City",
    "Den Haag",
    "Santa Fe",
    "San Antonio",
    "Costa Rica",
    "Sri Lanka",
    "Ho Chi Minh City",
    "Porto Alegre",
    "Palo Alto",
    "Santa Monica",
    "El Paso",
    "Fort Worth",
    "Long Beach",
]

PEOPLE = """
Anna Ben Carla David Emma Frank Grace Henry Iris Jack Kate Leo Maria Nina Oscar Paul Quinn Rosa Sam Tina Uma Victor
Wendy Xavier Yara Zoe Alice Bob Charlie Daniel Elena Felix George Hannah Ivan Julia Kevin Laura Martin Nora Oliver
Peter Robert Sarah Thomas Ursula Vera William Adam Bella Chris Diana Eric Fiona Gina Hugo Isabel James Karen Lisa Mark
Nancy Otto Patricia Rachel Simon Theresa Anton Bruno Clara Denis Eva Fred Gloria Helen Jonas Kim Lucas Mia Noah Olivia
Pierre Rita Stefan Tom Alex Barbara Carlos Dora Emil Alan Einstein Newton Mozart Shakespeare Picasso Napoleon Miller
Smith Jones Brown Taylor Wilson Johnson Davis Garcia Lopez Meyer Schmidt Weber Fischer Keller Ahmed Fatima Omar Ali
Yusuf Priya Raj Ravi Chen Wei Ming Yuki Kenji Hiro Sven Lars Ingrid Olga Dmitri Sergei Natasha Pavel Jan Piotr Sofia
Lena Marie Louis Claire Jean Antoine Giulia Marco Luca Paolo Pedro Juan Miguel Ana Lucia Diego Ethan Liam Mason Logan
Jacob Aiden Ella Ava Chloe Lily Sophie Ruby Amy Megan Rebecca Samuel Benjamin Edward Arthur Harry Walter Philip Andrew
Steven Brian Gary Larry Dennis Jerry Tyler Aaron Nathan Darwin Goethe Einstein Galileo Columbus Caesar Plato Lincoln
Gandhi Beethoven Bach Chopin Kafka Tesla Edison Kepler Euler Gauss Turing Curie
""".split()
PEOPLE = list(dict.fromkeys(PEOPLE))

ITEMS = """
bread milk coffee tea apples oranges bananas rice sugar salt butter cheese chicken fish pizza chocolate wine beer water
gold silver bitcoin oil gas wheat cotton shoes hats phones laptops books tickets flowers batteries honey eggs flour
pasta tomatoes potatoes onions carrots lemons grapes juice yogurt cream ham bacon beef pork salmon shrimp cookies candy
soap shampoo towels pillows lamps chairs tables desks sofas beds knives forks spoons plates cups pans candles pens
pencils paper notebooks bags wallets watches rings belts socks shirts jeans jackets coats gloves scarves boots sandals
bikes tires helmets tents ropes nails screws hammers paint brushes toys dolls puzzles balls skis guitars pianos drums
cameras printers keyboards screens cables speakers headphones tablets umbrellas sunglasses seeds plants diapers
medicine vitamins
""".split()

WORDS = """
music water science love money art food football summer winter rain snow sun moon stars space planets physics chemistry
biology math algebra geometry logic philosophy religion politics law economics business marketing finance stocks crypto
banks taxes insurance health vaccines sleep dreams exercise diet cancer heart brain emotions fear happiness friendship
childhood parents school university teachers students novels poetry movies theater games chess cards dance painting
photography guitar piano violin jazz rock opera cats dogs horses birds whales sharks elephants lions tigers bears
wolves insects bees spiders trees grass gardens forests mountains rivers lakes oceans islands deserts volcanoes
earthquakes storms clouds climate coal electricity cars trains ships bicycles roads bridges houses castles churches
cities villages farms bread kings queens emperors wars peace armies weapons slavery revolution democracy elections
greece atoms electrons light gravity magnetism relativity evolution genes cells viruses bacteria clocks glass steel
diamonds plastic silk leather clothes fashion colors mirrors doors kitchens hotels travel beaches camping skiing
swimming tennis basketball baseball golf boxing yoga olympics grammar english french german spanish chinese japanese
latin infinity triangles circles angles solar panels train tickets wind turbines electric cars robots astronauts
rockets satellites comets galaxies dinosaurs fossils mammoths penguins owls eagles frogs snakes turtles dolphins
monkeys rabbits mice cows sheep goats pigs ducks hens foxes deer squirrels bats butterflies ants roses tulips lilies
oaks maples cactus mushrooms berries cherries peaches pears melons nuts spices pepper cinnamon vanilla garlic ginger
recipes soup salad sandwiches burgers noodles sushi curry tacos desserts cakes pancakes breakfast lunch dinner picnic
restaurant wedding birthday christmas easter halloween holidays vacation airport passport luggage hostel museum gallery
statue temple palace pyramid tower stadium playground zoo circus carnival concert festival orchestra choir symphony
ballet comedy tragedy drama fiction poetry fairy tales legends myths gods angels demons ghosts witches dragons knights
pirates heroes detectives spies soldiers doctors nurses dentists lawyers judges police firefighters farmers fishermen
bakers butchers carpenters plumbers painters singers actors writers poets journalists scientists engineers
mathematicians astronomers psychology sociology anthropology archaeology geography geology meteorology medicine surgery
allergy fever headache cough bones muscles skin blood lungs stomach teeth eyes ears hair feet hands weather autumn
spring sunrise sunset thunder lightning fog rainbow flood drought inflation unemployment salary pension mortgage budget
economy trade industry factory agriculture fishing hunting mining newspaper magazine television radio cinema crossword
puzzle poker lottery gambling horoscope astrology tarot magic meditation buddhism islam judaism christianity bible
monks marriage divorce children babies grandparents neighbors loneliness courage honesty justice freedom wisdom truth
""".split()
WORDS = list(dict.fromkeys(WORDS))

ADJECTIVES = """
old new big small red blue green yellow black white beautiful ugly happy sad angry hungry tired rich poor young strange
famous dangerous expensive cheap delicious sweet bitter hot cold warm cool wet dry soft hard heavy light dark bright
loud quiet brave lazy clever wise funny boring strong weak healthy sick tall short long wide narrow deep round flat
sharp clean dirty wild tame rare common ancient modern foreign local electric wooden golden silver plastic royal holy
magic secret lonely friendly polite rude crazy gentle cruel noble proud jealous nervous calm northern southern european
african american asian german french italian spanish british russian greek roman medieval tropical
""".split()


def common_words(ranks_file, used, count=3000):
    """The first lower-case words of the vocabulary file (ranked by frequency) that occur in none of our own texts."""
    import base64
    import re

    out = []
    with open(ranks_file, "rb") as f:
        for line in f:
            t = base64.b64decode(line.split()[0])
            if re.fullmatch(rb" [a-z]{3,}", t) and (w := t[1:].decode()) not in used:
                out.append(w)
                if len(out) == count:
                    break
    return out


def _used():
    import re
    from facts import INTENTS, MACROS

    texts = list(MACROS.values())
    for t in INTENTS.values():
        texts += t["vp"] + t["np"] + t["q"] + [t["say"]] + list(t["think"])
    return set(re.findall(r"[a-z]+", " ".join(texts).lower()))


COMMON = common_words(os.path.join(os.environ["TIKTOKEN_ENCODINGS_BASE"], "o200k_base.tiktoken"), _used())
