"""The package that openapi-python-client makes of the document: the client lists, creates and answers."""

import os

from sluice_client import AuthenticatedClient
from sluice_client.api.control_plane import get_v1_crabs, get_v1_missions, get_v1_tasks
from sluice_client.api.grimoires import get_workflows
from sluice_client.api.runs import get_v1_inbox, post_v1_inbox
from sluice_client.api.tasks import get_v1_lifecycle_tasks, post_v1_lifecycle_tasks
from sluice_client.api.tokens import get_v1_tokens
from sluice_client.models import Answered, CreateTask

client = AuthenticatedClient(
    base_url=os.environ["SLUICE_URL"], token=os.environ["SLUICE_TOKEN"], raise_on_unexpected_status=True
)
wanted = CreateTask(project="coffee", branch="python", summary="From a generated client", no_spawn=True)
made = post_v1_lifecycle_tasks.sync(client=client, body=wanted)
listed = get_v1_lifecycle_tasks.sync(client=client)
assert made.task.id in [task.id for task in listed.tasks], listed

question = get_v1_inbox.sync(client=client).questions[0]
answered = post_v1_inbox.sync(client=client, body=Answered(id=question.id, option="skip"))
assert answered.run.id == question.run, answered

# Where words are chosen from: these are types of their own.
crabs = get_v1_crabs.sync(client=client)
assert crabs[0].state.value == "idle", crabs
for module in [get_v1_missions, get_v1_tasks, get_workflows]:
    assert module.sync(client=client) is not None
assert get_v1_tokens.sync(client=client).tokens[0].scope.value == "person"
print(f"openapi-python-client: {len(listed.tasks)} tasks, {len(crabs)} crabs, {question.id} answered")
