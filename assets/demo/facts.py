"""What the demo model knows about ossrun: importing this fills INTENTS from the facts_*.py files, in a fixed order.

The order counts: the generator draws by position, so the same seed gives the same dialogues only in this order.
"""

import facts_chat  # noqa: F401
import facts_server  # noqa: F401
import facts_models  # noqa: F401
import facts_flags  # noqa: F401
import facts_tools  # noqa: F401
import facts_background  # noqa: F401
import facts_talk  # noqa: F401
import facts_call  # noqa: F401
import facts_clients  # noqa: F401
import facts_running  # noqa: F401
import facts_world  # noqa: F401
from intents import INTENTS, MACROS

__all__ = ["INTENTS", "MACROS"]
