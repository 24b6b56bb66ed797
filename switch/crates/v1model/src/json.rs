// SPDX-License-Identifier: Apache-2.0
//! A cursor over the BMv2 JSON that knows where it is, so that every error names its JSON pointer.
//!
//! `Budget`: the memory that a program may take; everything is taken from it before it is allocated.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::hash::Hash;
use std::rc::Rc;

use num_bigint::BigInt;
use serde_json::Value;

use crate::bits::low_mask;
use crate::error::LoadError;

/// Result of reading the JSON.
pub(crate) type Load<T> = Result<T, LoadError>;

/// Returns with an error at this place of the JSON.
macro_rules! fail {
    ($json:expr, $($text:tt)+) => {
        return Err($json.error(format!($($text)+)))
    };
}
pub(crate) use fail;

/// Gives an error its place.
pub(crate) trait At<T> {
    fn at(self, json: &Json) -> Load<T>;
}

impl<T> At<T> for Result<T, String> {
    fn at(self, json: &Json) -> Load<T> {
        self.map_err(|message| json.error(message))
    }
}

/// A value of the document, the way to it, and the memory that the whole document may still take.
#[derive(Clone)]
pub(crate) struct Json<'a> {
    value: &'a Value,
    way: Option<Rc<Way<'a>>>,
    budget: &'a Budget,
}

struct Way<'a> {
    parent: Option<Rc<Way<'a>>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Display for Way<'_> {
    /// The JSON pointer (RFC 6901).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = &self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Key(key) => write!(f, "/{}", shorten(key).replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => write!(f, "/{index}"),
        }
    }
}

impl<'a> Json<'a> {
    /// The whole document.
    pub fn root(value: &'a Value, budget: &'a Budget) -> Json<'a> {
        Json {
            value,
            way: None,
            budget,
        }
    }

    /// Takes memory for what stands here; `what` names it: "register array `r` of 5 cells".
    pub fn charge(&self, bytes: u64, what: impl FnOnce() -> String) -> Load<()> {
        self.budget
            .take(bytes)
            .map_err(|refused| self.error(format!("{} {refused}", what())))
    }

    fn step(&self, value: &'a Value, step: Step<'a>) -> Json<'a> {
        Json {
            value,
            way: Some(Rc::new(Way {
                parent: self.way.clone(),
                step,
            })),
            budget: self.budget,
        }
    }

    /// The JSON pointer of this place; `/` is the whole document.
    pub fn path(&self) -> String {
        self.way
            .as_ref()
            .map_or("/".to_string(), |way| way.to_string())
    }

    /// An error here.
    pub fn error(&self, message: impl Into<String>) -> LoadError {
        LoadError::new(self.path(), message)
    }

    /// Fails here.
    pub fn fail<T>(&self, message: impl Into<String>) -> Load<T> {
        Err(self.error(message))
    }

    fn expected<T>(&self, what: &str) -> Load<T> {
        let found = match self.value {
            Value::Null => "null".into(),
            Value::Bool(_) => "a boolean".into(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) => format!("the text `{}`", shorten(text)),
            Value::Array(_) => "an array".into(),
            Value::Object(_) => "an object".into(),
        };
        fail!(self, "expected {what}, found {found}")
    }

    /// The value at `key`; absent and null are None.
    pub fn opt(&self, key: &'a str) -> Option<Json<'a>> {
        match self.value.get(key) {
            None | Some(Value::Null) => None,
            Some(value) => Some(self.step(value, Step::Key(key))),
        }
    }

    /// The value at `key`, which must be there.
    pub fn get(&self, key: &'a str) -> Load<Json<'a>> {
        match self.opt(key) {
            Some(json) => Ok(json),
            None => fail!(self, "`{key}` is missing"),
        }
    }

    /// The string at `key`.
    pub fn str_at(&self, key: &'a str) -> Load<&'a str> {
        self.get(key)?.str()
    }

    /// The items of this array. `{}` is an empty one: p4c writes a list in which it put nothing so.
    pub fn items(&self) -> Load<Vec<Json<'a>>> {
        match self.value {
            Value::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(i, value)| self.step(value, Step::Index(i)))
                .collect()),
            Value::Object(members) if members.is_empty() => Ok(Vec::new()),
            _ => self.expected("an array"),
        }
    }

    /// The items of the array at `key`; none when absent.
    pub fn list(&self, key: &'a str) -> Load<Vec<Json<'a>>> {
        self.opt(key).map_or(Ok(Vec::new()), |json| json.items())
    }

    /// Item `index` of this array.
    pub fn item(&self, index: usize) -> Load<Json<'a>> {
        match self.value {
            Value::Array(items) => match items.get(index) {
                Some(value) => Ok(self.step(value, Step::Index(index))),
                None => fail!(self, "has {} items, item {index} is missing", items.len()),
            },
            _ => self.expected("an array"),
        }
    }

    /// Exactly `N` items of this array.
    pub fn tuple<const N: usize>(&self) -> Load<[Json<'a>; N]> {
        let items = self.items()?;
        let found = items.len();
        items
            .try_into()
            .map_err(|_| self.error(format!("expected {N} items, found {found}")))
    }

    /// Keys and values of this object.
    pub fn members(&self) -> Load<Vec<(&'a str, Json<'a>)>> {
        match self.value {
            Value::Object(map) => Ok(map
                .iter()
                .map(|(key, value)| (key.as_str(), self.step(value, Step::Key(key))))
                .collect()),
            _ => self.expected("an object"),
        }
    }

    /// True for null.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// True for an array.
    pub fn is_array(&self) -> bool {
        self.value.is_array()
    }

    /// True for a string.
    pub fn is_str(&self) -> bool {
        self.value.is_string()
    }

    /// A string.
    pub fn str(&self) -> Load<&'a str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.expected("a string"),
        }
    }

    /// A boolean.
    pub fn bool(&self) -> Load<bool> {
        match self.value {
            Value::Bool(value) => Ok(*value),
            _ => self.expected("a boolean"),
        }
    }

    /// The boolean at `key`, `default` when absent.
    pub fn bool_or(&self, key: &'a str, default: bool) -> Load<bool> {
        self.opt(key).map_or(Ok(default), |json| json.bool())
    }

    /// A non-negative integer.
    pub fn u64(&self) -> Load<u64> {
        match self.value.as_u64() {
            Some(value) => Ok(value),
            None => self.expected("a non-negative integer"),
        }
    }

    /// A non-negative integer below 2^32.
    pub fn u32(&self) -> Load<u32> {
        let value = self.u64()?;
        u32::try_from(value)
            .map_err(|_| self.error(format!("{value} is too large; at most {}", u32::MAX)))
    }

    /// The non-negative integer below 2^32 at `key`.
    pub fn u32_at(&self, key: &'a str) -> Load<u32> {
        self.get(key)?.u32()
    }

    /// An integer (object ids may be negative in hand-made files).
    pub fn i64(&self) -> Load<i64> {
        match self.value.as_i64() {
            Some(value) => Ok(value),
            None => self.expected("an integer"),
        }
    }

    /// A `hexstr` of `width` bits, a negative one in two's complement.
    pub fn hexstr_of(&self, width: u32) -> Load<BigInt> {
        let value = self.hexstr()?;
        let bits = match value < BigInt::ZERO {
            true => (!&value).bits() + 1,
            false => value.bits(),
        };
        if bits <= width.into() {
            return Ok(value);
        }
        self.fail(match width {
            0..=64 => format!(
                "the value does not fit in {width} bits: -{:#x} to {:#x} do",
                low_mask(width).div_ceil(2),
                low_mask(width)
            ),
            _ => format!("the value does not fit in {width} bits"),
        })
    }

    /// A `hexstr`, e.g. `0x0800` or `-0x01`.
    pub fn hexstr(&self) -> Load<BigInt> {
        let text = self.str()?;
        integer(text).ok_or_else(|| {
            self.error(format!(
                "`{}` is no hexadecimal value such as 0x0800 or -0x01",
                shorten(text)
            ))
        })
    }
}

/// Reads `[-]0x…` or `[-]` hexadecimal digits.
pub(crate) fn integer(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let prefix = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let digits = prefix.unwrap_or(digits).as_bytes();
    let value = BigInt::parse_bytes(digits, 16)?;
    let is_plain = digits.iter().all(u8::is_ascii_hexdigit);
    is_plain.then(|| if text.starts_with('-') { -value } else { value })
}

/// Two's complement in `limbs` limbs (modulo 2^(64·limbs)), least significant first.
pub(crate) fn to_limbs(value: &BigInt, limbs: usize) -> Vec<u64> {
    let mut out: Vec<u64> = match *value < BigInt::ZERO {
        true => (value & ((BigInt::from(1) << (64 * limbs)) - 1u8))
            .iter_u64_digits()
            .collect(),
        false => value.iter_u64_digits().collect(),
    };
    out.resize(limbs, 0);
    out
}

/// The beginning of a text of any length, for an error.
fn shorten(text: &str) -> std::borrow::Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// The names or ids of one kind of objects, which may be declared once, and where they were.
pub(crate) struct Unique<'a, K> {
    /// "header", "action id".
    what: &'static str,
    places: HashMap<K, Json<'a>>,
}

impl<'a, K: Eq + Hash + Copy + Display> Unique<'a, K> {
    pub fn new(what: &'static str) -> Self {
        Unique {
            what,
            places: HashMap::new(),
        }
    }

    /// Declares `key` at `json`.
    pub fn add(&mut self, key: K, json: &Json<'a>) -> Load<()> {
        if let Some(first) = self.places.get(&key) {
            fail!(
                json,
                "{} {} is declared a second time; the first is {}",
                self.what,
                shorten(&key.to_string()),
                first.path()
            );
        }
        self.places.insert(key, json.clone());
        Ok(())
    }

    fn add_of(&mut self, key: Load<K>, json: &Json<'a>) -> Load<K> {
        let key = key?;
        self.add(key, json)?;
        Ok(key)
    }
}

impl<'a> Unique<'a, &'a str> {
    /// Declares the name of the object `json`.
    pub fn add_name_of(&mut self, json: &Json<'a>) -> Load<&'a str> {
        let name = json.get("name")?;
        self.add_of(name.str(), &name)
    }
}

impl<'a> Unique<'a, i64> {
    /// Declares the id of the object `json`.
    pub fn numbered(&mut self, json: &Json<'a>) -> Load<i64> {
        let id = json.get("id")?;
        self.add_of(id.i64(), &id)
    }
}

impl<'a> Unique<'a, u64> {
    /// Declares the id, which is not negative, of the object `json`.
    pub fn counted(&mut self, json: &Json<'a>) -> Load<u64> {
        let id = json.get("id")?;
        self.add_of(id.u64(), &id)
    }
}

/// Bytes that one program may take, and those that are left of them.
#[derive(Debug)]
pub(crate) struct Budget {
    all: u64,
    left: Cell<u64>,
}

/// More was wanted than is left.
#[derive(Debug)]
pub(crate) struct Refused {
    wanted: u64,
    left: u64,
    all: u64,
}

impl Budget {
    pub fn new(all: u64) -> Budget {
        Budget {
            all,
            left: Cell::new(all),
        }
    }

    /// Bytes that were taken.
    pub fn taken(&self) -> u64 {
        self.all - self.left.get()
    }

    pub fn take(&self, bytes: u64) -> Result<(), Refused> {
        let left = self.left.get();
        match left.checked_sub(bytes) {
            Some(rest) => {
                self.left.set(rest);
                Ok(())
            }
            None => Err(Refused {
                wanted: bytes,
                left,
                all: self.all,
            }),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { wanted, left, all } = *self;
        write!(f, "would take {}", Bytes(wanted))?;
        match left == all {
            true => write!(f, "; a program may take {}", Bytes(all)),
            false => write!(
                f,
                "; of the {} that a program may take, {} are left",
                Bytes(all),
                Bytes(left)
            ),
        }
    }
}

/// A number of bytes for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let (mut value, mut unit) = (self.0 as f64, "bytes");
        for next in units {
            if value < 1024.0 {
                break;
            }
            (value, unit) = (value / 1024.0, next);
        }
        match unit {
            "bytes" => write!(f, "{} bytes", self.0),
            _ => write!(f, "{value:.1} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexstr_of_any_size_and_sign() {
        assert_eq!(integer("0x0800"), Some(0x800.into()));
        assert_eq!(
            to_limbs(&integer("-0x01").unwrap(), 2),
            vec![u64::MAX, u64::MAX]
        );
        let wide = integer("0x1ffffffffffffffff").unwrap();
        assert_eq!((wide.bits(), to_limbs(&wide, 1)), (65, vec![u64::MAX]));
        for wrong in ["0xzz", "", "--1", "+1", "0x_1", "0x"] {
            assert_eq!(integer(wrong), None, "{wrong}");
        }
        assert_eq!(integer("-0x00"), Some(BigInt::ZERO));
    }

    #[test]
    fn a_width_takes_its_unsigned_and_its_signed_values() {
        let budget = Budget::new(0);
        let fits = |text: &str, width| {
            let value = Value::from(text);
            Json::root(&value, &budget).hexstr_of(width).is_ok()
        };
        for (text, least) in [
            ("0x00", 0),
            ("0xff", 8),
            ("0x100", 9),
            ("-0x01", 1),
            ("-0x02", 2),
            ("-0x03", 3),
            ("-0x80", 8),
            ("-0x81", 9),
            ("-0x8000000000000000", 64),
            ("-0x8000000000000001", 65),
            ("-0x10000000000000001", 66),
        ] {
            assert!(
                fits(text, least) && (least == 0 || !fits(text, least - 1)),
                "{text}"
            );
        }
    }
}

#[cfg(test)]
mod budget_tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_takes_nothing() {
        let budget = Budget::new(3000);
        assert_eq!(
            budget.take(5 << 30).unwrap_err().to_string(),
            "would take 5.0 GiB; a program may take 2.9 KiB"
        );
        budget.take(2000).unwrap();
        assert_eq!(
            budget.take(1001).unwrap_err().to_string(),
            "would take 1001 bytes; of the 2.9 KiB that a program may take, 1000 bytes are left"
        );
        budget.take(1000).unwrap();
        assert_eq!(budget.taken(), 3000);
        assert!(budget.take(1).is_err() && budget.take(0).is_ok());
        assert!(budget.take(u64::MAX).is_err());
    }
}
