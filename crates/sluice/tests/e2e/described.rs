//! A served home with the document that describes it: every answer is held against what the document says.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::home::{Home, run};
use super::recipes::{grimoire, write};
use super::served::{Answer, Served, request, token};

/// One way to ask for something.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) about: Value,
}

impl Operation {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether it is about this path.
    fn is_at(&self, path: &str) -> bool {
        let path = path.split('?').next().unwrap();
        let (wanted, asked): (Vec<&str>, Vec<&str>) = (self.path.split('/').collect(), path.split('/').collect());
        let fits = |(wanted, asked): (&&str, &&str)| wanted == asked || wanted.starts_with('{');
        wanted.len() == asked.len() && wanted.iter().zip(&asked).all(fits)
    }

    /// The status and the media type of what is done.
    pub(crate) fn done(&self) -> (u16, Option<&str>) {
        let (status, answer) = self.about["responses"].as_object().unwrap().iter().next().unwrap();
        let form = answer["content"].as_object().and_then(|content| content.keys().next());
        (status.parse().unwrap(), form.map(String::as_str))
    }
}

/// A home that is served, and what it says about itself.
pub(crate) struct Described {
    pub(crate) document: Value,
    pub(crate) operations: Vec<Operation>,
    pub(crate) served: Served,
    pub(crate) secret: String,
    asked: BTreeSet<String>,
}

/// A manifest that a mission can have.
const MISSION: &str = include_str!("../../../sluice-dialect/tests/seeds/001-dev-task.toml");

/// A home with some of everything that can be started.
pub(crate) fn furnished() -> Home {
    let home = Home::new();
    let config = "[defaults]\nharness = \"demo\"\n\n[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n";
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    write(&home, "prompts/workflows/dev-task.toml", MISSION);
    for name in ["plan", "implement", "review", "pr"] {
        write(&home, &format!("prompts/do/{name}.md"), "{{mission_prompt}}\n{{context}}\n");
    }
    grimoire(&home, "gated", "steps:\n  - {name: tests, type: gate, command: 'test -e fine'}\n");
    grimoire(&home, "broken", "steps:\n  - {name: bad, type: script, command: 'exit 3'}\n");
    let makes = "echo new > made; git add made; git commit --quiet --message made";
    grimoire(&home, "makes", &format!("steps:\n  - {{name: make, type: script, command: '{makes}'}}\n"));
    write(
        &home,
        ".work/templates/by-hand.toml",
        "template = \"by-hand\"\nversion = 1\n\n[[steps]]\nid = \"one\"\ntitle = \"Do one\"\ndescription = \"Do it.\"\n",
    );
    home
}

impl Described {
    /// Serves a home.
    pub(crate) fn serve(home: &Home) -> Described {
        let prompts = home.repository().join("prompts").display().to_string();
        let served = Served::start(home, &["--prompts", &prompts]);
        let (_, secret) = token(home, &[]);
        let document = served.ask("GET", "/v1/openapi.json", Some(&secret), "").json();
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, about) in methods.as_object().unwrap() {
                let (method, path) = (method.to_uppercase(), path.clone());
                operations.push(Operation { method, path, about: about.clone() });
            }
        }
        // One that is written out comes before one with a hole in its place.
        operations.sort_by_key(|it| it.path.matches('{').count());
        Described { document, operations, served, secret, asked: BTreeSet::new() }
    }

    /// The operation that answers at a path.
    #[track_caller]
    pub(crate) fn operation(&self, method: &str, path: &str) -> Operation {
        let found = self.operations.iter().find(|it| it.method == method && it.is_at(path));
        found.unwrap_or_else(|| panic!("{method} {path} is not described")).clone()
    }

    /// Asks for something that is done, and holds the answer against the document.
    #[track_caller]
    pub(crate) fn does(&mut self, method: &str, path: &str, body: &str) -> Value {
        let secret = self.secret.clone();
        self.does_as(&secret, method, path, body)
    }

    /// The same, with another token.
    #[track_caller]
    pub(crate) fn does_as(&mut self, secret: &str, method: &str, path: &str, body: &str) -> Value {
        let operation = self.operation(method, path);
        let answer = self.served.ask(method, path, Some(secret), body);
        let (status, form) = operation.done();
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        let form = form.unwrap();
        assert!(answer.head.contains(&format!("content-type: {form}")), "{method} {path}: {answer:?}");
        self.asked.insert(operation.name());
        match form {
            "application/json" => {
                let said = answer.json();
                let schema = &operation.about["responses"][status.to_string()]["content"][form]["schema"];
                self.must_fit(&format!("{method} {path}"), schema, &said);
                said
            }
            _ => Value::String(answer.body),
        }
    }

    /// Notes that something was asked for in another way.
    pub(crate) fn note(&mut self, method: &str, path: &str) {
        let name = self.operation(method, path).name();
        self.asked.insert(name);
    }

    /// What the document has and nobody asked for.
    pub(crate) fn unasked(&self) -> Vec<String> {
        self.operations.iter().map(Operation::name).filter(|name| !self.asked.contains(name)).collect()
    }

    /// An answer has everything that it must have, and nothing that is not described.
    #[track_caller]
    fn must_fit(&self, what: &str, schema: &Value, said: &Value) {
        let errors: Vec<String> = self
            .strict(schema)
            .iter_errors(said)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:#?} in {said:#}");
    }

    fn strict(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        schema["components"] = json!({ "schemas": self.document["components"]["schemas"] });
        close(&mut schema);
        jsonschema::validator_for(&schema).unwrap()
    }

    /// A "no" is of the one shape, with a status of the four hundreds that is described.
    #[track_caller]
    pub(crate) fn must_refuse(&self, operation: &Operation, what: &str, answer: &Answer) -> u16 {
        let what = format!("{} {what}", operation.name());
        assert!((400..500).contains(&answer.status), "{what}: {answer:?}");
        assert!(operation.about["responses"].get(answer.status.to_string()).is_some(), "{what}: {answer:?}");
        assert!(answer.head.contains("content-type: application/json"), "{what}: {answer:?}");
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let said = answer.json();
        self.must_fit(&what, &problem, &said);
        assert_eq!(said["ok"], false, "{what}: {answer:?}");
        answer.status
    }

    /// Asks with a body of another form.
    pub(crate) fn ask_with(&self, method: &str, path: &str, more: &str, body: &str) -> Answer {
        let head = format!("authorization: Bearer {}\r\n{more}", self.secret);
        self.served.say(format!("{}{body}", request(method, path, &head, body.len())).as_bytes())
    }
}

/// Makes every table of a schema one that has no other fields than those that are described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && fields.get("type").is_some_and(|kind| kind == "object") {
                fields.entry("additionalProperties").or_insert(false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Another repository with one commit.
pub(crate) fn repository(home: &Home, name: &str) -> String {
    let folder = home.path(name);
    std::fs::create_dir(&folder).unwrap();
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["-c", "user.name=Somebody", "-c", "user.email=a@example.invalid", "commit", "--allow-empty", "-qm", "begin"],
    ] {
        run(home.program("git").current_dir(&folder).args(arguments)).done();
    }
    folder.display().to_string()
}
