// SPDX-License-Identifier: Apache-2.0
//! The forms of a setting that is a function of time, one row each, and how they become a [`Series`].

use super::series::{Course, Draw, Series, Shape};
use super::settings::Range;
use super::{files, Nanos};
use serde_json::{json, Map, Value};
use std::sync::Arc;

/// What a key of a form may be.
#[derive(Clone, Copy)]
enum Part {
    /// Pairs of time in s and value.
    Steps,
    /// Two values.
    Two,
    Values,
    Number(Range),
    Flag,
    File,
    /// `random`, or a time in s.
    Phase,
}

const fn number(min: f64, max: f64, unit: &'static str) -> Part {
    Part::Number(Range {
        min,
        max,
        unit,
        whole: false,
        zero: None,
    })
}

/// A form: it is known by the first of the keys that it needs.
struct Form {
    needs: &'static [&'static str],
    may: &'static [&'static str],
    about: &'static str,
}

const fn form(
    needs: &'static [&'static str],
    may: &'static [&'static str],
    about: &'static str,
) -> Form {
    Form { needs, may, about }
}

/// Values are in ms (delay, jitter) and bit/s (rate), whatever the unit of the setting's key.
const FORMS: [Form; 7] = [
    form(&["steps"], &["repeat_s", "glide"], "Steps at given times."),
    form(&["uniform", "every_s"], &["phase"], "Drawn evenly between two values, again and again."),
    form(&["normal", "every_s"], &["phase"], "Drawn from a normal distribution, within four standard deviations."),
    form(&["choice", "every_s"], &["phase"], "Drawn from values that are equally likely."),
    form(&["file"], &["step_ms", "scale", "repeat_s", "glide"], "Steps of a file: time in s and value a line; with `step_ms` a value a line, over and over (LeoReplayer)."),
    form(&["attenuation", "modcod", "clear_sky_db", "symbol_rate"], &["loop_s", "repeat_s"], "Rain by OpenSAND's files, for a rate or a loss: the coding (DVB-S2 ACM) follows the attenuation; where the coding in force needs a better signal, all is lost."),
    form(&["trace"], &[], "A rate by a delivery trace in Mahimahi's format."),
];

const PARTS: [(&str, Part, &str); 17] = [
    ("steps", Part::Steps, "[time in s, value] each, the times rising."),
    ("uniform", Part::Two, "Least and largest value."),
    ("normal", Part::Two, "Mean and standard deviation."),
    ("choice", Part::Values, "The values."),
    ("file", Part::File, "Comments begin with # or /*."),
    ("attenuation", Part::File, "Time in s and dB a line."),
    ("trace", Part::File, "A time in ms a line, 1,500 bytes each."),
    ("modcod", Part::File, "Number, modulation, coding rate, bits a symbol and needed Es/N0 in dB a line."),
    ("every_s", number(1e-3, 1e6, " s"), "How long a value holds."),
    ("phase", Part::Phase, "How much of the first value's time is over at the beginning, in s; random, the default, is drawn."),
    ("repeat_s", number(1e-3, 1e6, " s"), "After so long it begins anew."),
    ("glide", Part::Flag, "The value goes straight to the next one; that of a rate in steps of 1 ms."),
    ("step_ms", number(1e-3, 1e6, " ms"), "How long a line holds."),
    ("scale", number(1e-9, 1e12, ""), "The file's values are multiplied by it."),
    ("clear_sky_db", number(-20.0, 60.0, " dB"), "Es/N0 without attenuation."),
    ("symbol_rate", number(1e3, 1e9, " baud"), "Symbols a second."),
    ("loop_s", number(0.0, 60.0, " s"), "How much later the coding follows; 0 without it."),
];

fn part(name: &str) -> Part {
    let found = PARTS.iter().find(|part| part.0 == name);
    found.map_or(Part::Flag, |part| part.1)
}

/// A form as a JSON Schema.
pub(super) fn schema() -> Value {
    let value = |part| match part {
        Part::Steps => {
            json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, "minItems": 1})
        }
        Part::Two => {
            json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
        }
        Part::Values => json!({"type": "array", "items": {"type": "number"}, "minItems": 1}),
        Part::Number(range) => {
            json!({"type": "number", "minimum": range.min, "maximum": range.max})
        }
        Part::Flag => json!({"type": "boolean"}),
        Part::File => json!({"type": "string"}),
        Part::Phase => json!({"anyOf": [{"const": "random"}, {"type": "number", "minimum": 0}]}),
    };
    let form = |form: &Form| {
        let keys = PARTS
            .iter()
            .filter(|part| form.needs.contains(&part.0) || form.may.contains(&part.0));
        let property = |(name, part, about): &(&str, Part, &str)| {
            let mut property = value(*part);
            property["description"] = json!(about);
            ((*name).to_owned(), property)
        };
        let properties: Map<String, Value> = keys.map(property).collect();
        json!({"type": "object", "description": form.about, "additionalProperties": false,
               "required": form.needs, "properties": properties})
    };
    json!({"oneOf": FORMS.iter().map(form).collect::<Value>()})
}

/// What a form is read for.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    /// Of its values.
    pub range: Range,
    /// From a value in a form to that of the options.
    pub factor: f64,
    pub is_rate: bool,
    /// An attenuation makes it the loss.
    pub is_loss: bool,
}

/// Reads a form.
///
/// # Errors
/// What is wrong, and what is allowed.
pub(super) fn read(given: &Value, of: Quantity) -> Result<Course, String> {
    let words = || FORMS.map(|form| form.needs[0]).join(", ");
    let object = given.as_object();
    let object = object.ok_or_else(|| {
        format!(
            "{given} is no number; allowed: one, or an object with one of: {}",
            words()
        )
    })?;
    let form = FORMS.iter().find(|form| object.contains_key(form.needs[0]));
    let form = form.ok_or_else(|| format!("an object is to have one of: {}", words()))?;
    let known = || [form.needs, form.may].concat().join(", ");
    for key in object.keys() {
        if !form.needs.contains(&&**key) && !form.may.contains(&&**key) {
            return Err(format!(
                "{key}: unknown key beside {}; allowed: {}",
                form.needs[0],
                known()
            ));
        }
    }
    if let Some(missing) = form.needs.iter().find(|key| !object.contains_key(**key)) {
        return Err(format!(
            "{}: {missing} is missing; allowed: {}",
            form.needs[0],
            known()
        ));
    }
    let keys = Keys { object, of };
    let shape = match form.needs[0] {
        "trace" if of.is_rate => return Ok(Course::Trace(super::read_trace(keys.text("trace")?)?)),
        "attenuation" if of.is_rate || of.is_loss => keys.rain()?,
        "trace" | "attenuation" => {
            return Err(format!(
                "{} makes no such setting; allowed: {}",
                form.needs[0],
                &FORMS[..5]
                    .iter()
                    .map(|form| form.needs[0])
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
        }
        "steps" => keys.steps(keys.pairs()?, keys.time("repeat_s", 1e9)?)?,
        "file" => keys.file()?,
        kind => keys.drawn(kind)?,
    };
    let bounds = [of.range.min, of.range.max].map(|bound| bound * of.factor);
    Ok(Course::Series(Arc::new(Series::new(
        given.clone(),
        shape,
        bounds,
    ))))
}

/// The keys of a form that are there.
struct Keys<'a> {
    object: &'a Map<String, Value>,
    of: Quantity,
}

type Steps = Vec<(Nanos, f64)>;

impl Keys<'_> {
    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let (Some(value), Part::Number(range)) = (self.object.get(key), part(key)) else {
            return Ok(None);
        };
        range
            .read(value)
            .map(Some)
            .map_err(|e| format!("{key}: {e}"))
    }

    /// A time in a unit of so many nanoseconds.
    fn time(&self, key: &str, ns: f64) -> Result<Option<Nanos>, String> {
        Ok(self.number(key)?.map(|x| libm::round(x * ns) as Nanos))
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        let value = self.object.get(key).unwrap_or(&Value::Bool(false));
        value
            .as_bool()
            .ok_or_else(|| format!("{key}: {value} is not known; allowed: true, false"))
    }

    fn text(&self, key: &str) -> Result<&str, String> {
        let value = self.object.get(key).unwrap_or(&Value::Null);
        let text = value.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("{key}: {value} is not a file; allowed: a path"))
    }

    /// A value of the quantity, in the options' unit.
    fn value(&self, x: f64, place: &str) -> Result<f64, String> {
        let mut range = self.of.range;
        if self.of.is_rate {
            range.zero = Some("nothing leaves");
        }
        range.whole = false;
        let checked = range.check(x, x).map_err(|e| format!("{place}: {e}"));
        checked.map(|x| x * self.of.factor)
    }

    fn numbers(&self, key: &str) -> Result<Vec<f64>, String> {
        let value = &self.object[key];
        let numbers = value
            .as_array()
            .and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<_>>>());
        let wrong = || format!("{key}: {value} is not a list of numbers");
        let numbers = numbers
            .filter(|numbers| !numbers.is_empty())
            .ok_or_else(wrong)?;
        match part(key) {
            Part::Two if numbers.len() != 2 => Err(format!("{key}: {value} is not two numbers")),
            _ => Ok(numbers),
        }
    }

    fn pairs(&self) -> Result<Vec<[f64; 2]>, String> {
        let value = &self.object["steps"];
        let pair = |pair: &Value| match pair.as_array()?.as_slice() {
            [t, x] => Some([t.as_f64()?, x.as_f64()?]),
            _ => None,
        };
        let pairs = value
            .as_array()
            .and_then(|list| list.iter().map(pair).collect());
        pairs.ok_or_else(|| "steps: is not a list of pairs [time in s, value]".to_owned())
    }

    fn drawn(&self, kind: &str) -> Result<Shape, String> {
        let given = self.numbers(kind)?;
        let numbers: Result<Vec<f64>, String> = match kind {
            // A standard deviation may be below the least value.
            "normal" => self
                .value(given[0], kind)
                .map(|mean| vec![mean, given[1] * self.of.factor]),
            _ => given.iter().map(|x| self.value(*x, kind)).collect(),
        };
        let numbers = numbers?;
        let draw = match kind {
            "uniform" if numbers[0] > numbers[1] => {
                return Err(format!(
                    "uniform: {} is above {}; the least comes first",
                    given[0], given[1]
                ));
            }
            "uniform" => Draw::Uniform(numbers[0], numbers[1]),
            "normal" if numbers[1] < 0.0 => {
                return Err(format!(
                    "normal: a standard deviation of {} is below 0",
                    given[1]
                ));
            }
            "normal" => Draw::Normal(numbers[0], numbers[1]),
            _ => Draw::Choice(numbers.into()),
        };
        let every = self.time("every_s", 1e9)?.unwrap_or(1);
        let phase = match self.object.get("phase") {
            None => None,
            Some(Value::String(word)) if word == "random" => None,
            Some(given) => {
                let at = given
                    .as_f64()
                    .filter(|s| *s >= 0.0 && *s * 1e9 < every as f64);
                let wrong = || {
                    format!("phase: {given} is not known; allowed: \"random\", or a time in s below every_s")
                };
                Some(libm::round(at.ok_or_else(wrong)? * 1e9) as Nanos)
            }
        };
        Ok(Shape::Drawn { draw, every, phase })
    }

    fn steps(&self, pairs: Vec<[f64; 2]>, repeat: Option<Nanos>) -> Result<Shape, String> {
        let mut steps = Steps::with_capacity(pairs.len());
        for (number, [s, x]) in (1..).zip(pairs) {
            let place = format!("step {number}");
            let at = libm::round(s * 1e9) as Nanos;
            if !(0.0..=1e9).contains(&s) || steps.last().is_some_and(|last| last.0 >= at) {
                return Err(format!("{place}: {s} s is not behind the one before; allowed: times that rise, 0 to 1e9 s"));
            }
            steps.push((at, self.value(x, &place)?));
        }
        let Some(last) = steps.last() else {
            return Err("has no step; allowed: one or more".to_owned());
        };
        if let Some(repeat) = repeat.filter(|repeat| *repeat <= last.0) {
            return Err(format!(
                "repeat_s: {} s is not behind the last step ({} s)",
                repeat as f64 / 1e9,
                last.0 as f64 / 1e9
            ));
        }
        let steps = steps.into();
        Ok(Shape::Steps {
            steps,
            repeat,
            glide: self.flag("glide")?,
        })
    }

    fn file(&self) -> Result<Shape, String> {
        let path = self.text("file")?;
        let scale = self.number("scale")?.unwrap_or(1.0);
        let repeat = self.time("repeat_s", 1e9)?;
        let step_ms = self.number("step_ms")?;
        let rows = rows(path, &[0, 1][..if step_ms.is_some() { 1 } else { 2 }])?;
        let pairs: Vec<[f64; 2]> = match step_ms {
            Some(ms) => (0..)
                .zip(&rows)
                .map(|(i, row)| [f64::from(i) * ms / 1e3, row[0] * scale])
                .collect(),
            None => rows.iter().map(|row| [row[0], row[1] * scale]).collect(),
        };
        let length = step_ms.map(|ms| libm::round(rows.len() as f64 * ms * 1e6) as Nanos);
        self.steps(pairs, repeat.or(length))
            .map_err(|e| format!("{path}: {e}"))
    }

    /// The rate that the best coding gives, or 1 where the one in force needs a better signal than there is.
    fn rain(&self) -> Result<Shape, String> {
        let path = self.text("attenuation")?;
        let number = |key| Ok::<f64, String>(self.number(key)?.unwrap_or(0.0));
        let (clear, symbols, late) = (
            number("clear_sky_db")?,
            number("symbol_rate")?,
            number("loop_s")?,
        );
        let fades = rows(path, &[0, 1])?;
        // Bits a symbol and the signal that they need.
        let codings = rows(self.text("modcod")?, &[3, 4])?;
        // None: no coding is possible.
        let best = |db: f64| {
            let possible = codings.iter().filter(|coding| coding[1] <= clear - db);
            possible.max_by(|a, b| a[0].total_cmp(&b[0]))
        };
        let pairs: Vec<[f64; 2]> = match self.of.is_rate {
            true => {
                let later = |(i, fade): (usize, &Vec<f64>)| {
                    let at = if i == 0 { 0.0 } else { fade[0] + late };
                    [at, best(fade[1]).map_or(0.0, |coding| coding[0] * symbols)]
                };
                fades.iter().enumerate().map(later).collect()
            }
            false => {
                let mut times: Vec<f64> = fades
                    .iter()
                    .flat_map(|fade| [fade[0], fade[0] + late])
                    .collect();
                times.sort_by(f64::total_cmp);
                times.dedup();
                let db = |t: f64| {
                    let behind = fades.partition_point(|fade| fade[0] <= t);
                    fades[behind.max(1) - 1][1]
                };
                let lost = |t: f64| {
                    let is_short =
                        best(db(t - late)).is_some_and(|coding| coding[1] > clear - db(t));
                    [t, f64::from(u8::from(is_short))]
                };
                times.into_iter().map(lost).collect()
            }
        };
        self.steps(pairs, self.time("repeat_s", 1e9)?)
            .map_err(|e| format!("{path}: {e}"))
    }
}

/// These columns of a file's lines: numbers between blanks, commas or semicolons. Comments (`#`, `/*`), empty lines,
/// `NAME = NUMBER`, and a heading are passed over.
fn rows(path: &str, columns: &[usize]) -> Result<Vec<Vec<f64>>, String> {
    let text = files::text(path)?;
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '/']) || line.contains('=') {
            continue;
        }
        let words: Vec<&str> = line
            .split([' ', '\t', ',', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        let row = columns.iter().map(|column| {
            words
                .get(*column)?
                .parse()
                .ok()
                .filter(|x: &f64| x.is_finite())
        });
        match row.collect::<Option<Vec<f64>>>() {
            Some(row) => rows.push(row),
            // Only a heading has no number.
            None if rows.is_empty() && words.iter().all(|word| word.parse::<f64>().is_err()) => {}
            None => {
                let shown: String = line.chars().take(40).collect();
                let needed = columns.last().map_or(0, |last| last + 1);
                return Err(format!(
                    "{path}: line {number}: {shown:?} has no {needed} columns with numbers"
                ));
            }
        }
    }
    match rows.len() {
        0 => Err(format!("{path}: has no line with numbers")),
        1..=super::OPPORTUNITIES_MAX => Ok(rows),
        many => Err(format!(
            "{path}: {many} lines are too many; allowed: 1 to {}",
            super::OPPORTUNITIES_MAX
        )),
    }
}
