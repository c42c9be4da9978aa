#!/usr/bin/env python3
"""Writes pydantic.jsonl: tools' parameters as Pydantic makes them, a line each.

pip install pydantic==2.14.4; python3 make.py > pydantic.jsonl
"""
import datetime, decimal, enum, json, sys, typing, uuid
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic import v1


class Guest(BaseModel):
    """Somebody who stays."""
    name: str = Field(description="as in the passport")
    age: Optional[int] = Field(None, description="in years")


class Book(BaseModel):
    guest: Guest
    other: Optional[Guest] = Field(None, description="who shares the room")
    nights: Optional[int] = Field(None, description="how many nights")


class Colour(str, enum.Enum):
    red = "red"
    green = "green"


class Size(enum.IntEnum):
    small = 1
    large = 2


class Cat(BaseModel):
    """It purrs."""
    kind: Literal["cat"]
    lives: int = Field(9, description="how many are left")


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = Field(default_factory=list, description="what it can do")


class Pets(BaseModel):
    pet: Union[Cat, Dog] = Field(discriminator="kind", description="the one to be found")
    more: list[Union[Cat, Dog]] = Field(default_factory=list)
    maybe: Optional[Union[Cat, Dog]] = None
    colour: Colour = Colour.red
    painted: Optional[Colour] = Field(None, description="if it was painted")
    size: Size = Size.small
    mood: Optional[Literal["calm", "wild"]] = None
    version: Literal[2] = 2


class Node(BaseModel):
    """A place in a tree."""
    label: str = Field(description="shown on the branch")
    children: list["Node"] = Field(default_factory=list, description="what grows on it")
    parent: Optional["Node"] = None


class Employee(BaseModel):
    name: str
    team: Optional["Team"] = None


class Team(BaseModel):
    title: str = Field(description="of the door plate")
    members: list[Employee]


class Point(BaseModel):
    x: float = Field(description="to the east")
    y: float = Field(description="to the north")


class Shapes(BaseModel):
    model_config = ConfigDict(extra="forbid")
    corner: tuple[Point, Point]
    pair: tuple[int, str] = (1, "a")
    named: dict[str, Point] = Field(default_factory=dict, description="points by name")
    counts: dict[str, int] = Field(default_factory=dict)
    grid: list[list[Point]] = Field(default_factory=list)
    mixed: list[Union[int, str]] = Field(default_factory=list)
    gaps: list[Optional[int]] = Field(default_factory=list)


class Scalars(BaseModel):
    either: Union[int, str, bool]
    ratio: Union[int, float, None] = None
    when: datetime.datetime = Field(description="with a time zone")
    day: Optional[datetime.date] = None
    id: uuid.UUID
    price: decimal.Decimal
    anything: Any = None
    limit: Annotated[int, Field(ge=1, le=9, description="from one to nine")] = 3
    text: Annotated[Optional[str], Field(max_length=9, examples=["a", "b"])] = None
    nothing: None = None


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T] = Field(description="of this page")
    next: Optional[str] = Field(None, description="where the next one begins")


class Deep3(BaseModel):
    leaf: str = Field(description="the innermost")


class Deep2(BaseModel):
    three: Deep3


class Deep1(BaseModel):
    two: Optional[Deep2] = None


class Deep(BaseModel):
    one: dict[str, list[Deep1]]


class Old1(v1.BaseModel):
    """Of the first Pydantic."""
    street: str = v1.Field(description="with its number")


class Old(v1.BaseModel):
    home: Old1 = v1.Field(description="where the post goes")
    work: typing.Optional[Old1] = None


def described(street: Annotated[str, Field(description="of the road")],
              guests: list[Guest], quiet: bool = True):
    """Finds a room."""


schemas = {
    "book": Book.model_json_schema(), "pets": Pets.model_json_schema(),
    "tree": Node.model_json_schema(), "teams": Employee.model_json_schema(),
    "shapes": Shapes.model_json_schema(), "scalars": Scalars.model_json_schema(),
    "page": Page[Guest].model_json_schema(), "deep": Deep.model_json_schema(),
    "served": Book.model_json_schema(mode="serialization"),
    "either": TypeAdapter(Union[Cat, Dog]).json_schema(),
    "arguments": TypeAdapter(described).json_schema(),
    "old": Old.schema(),
}
for name, schema in schemas.items():
    print(json.dumps({"by": f"pydantic {pydantic.VERSION}", "name": name, "schema": schema}))
print(f"{len(schemas)} schemas of pydantic {pydantic.VERSION}", file=sys.stderr)
