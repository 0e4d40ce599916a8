"""The Python package that openapi-generator makes of the document: the client lists, creates and answers."""

import os

import openapi_client as sluice

configuration = sluice.Configuration(host=os.environ["SLUICE_URL"], access_token=os.environ["SLUICE_TOKEN"])
with sluice.ApiClient(configuration) as client:
    tasks, runs, plane = sluice.TasksApi(client), sluice.RunsApi(client), sluice.ControlPlaneApi(client)
    wanted = sluice.CreateTask(project="coffee", branch="generator", summary="From a generated client", no_spawn=True)
    made = tasks.post_v1_lifecycle_tasks(create_task=wanted)
    listed = tasks.get_v1_lifecycle_tasks()
    assert made.task.id in [task.id for task in listed.tasks], listed

    question = runs.get_v1_inbox().questions[0]
    answered = runs.post_v1_inbox(sluice.Answered(id=question.id, option="skip"))
    assert answered.run.id == question.run, answered

    # Where words are chosen from: these are types of their own.
    crabs = plane.get_v1_crabs()
    assert crabs[0].state.value == "idle", crabs
    plane.get_v1_missions()
    plane.get_v1_tasks()
    sluice.GrimoiresApi(client).get_workflows()
    assert sluice.TokensApi(client).get_v1_tokens().tokens[0].scope.value == "person"
    print(f"openapi-generator: {len(listed.tasks)} tasks, {len(crabs)} crabs, {question.id} answered")
