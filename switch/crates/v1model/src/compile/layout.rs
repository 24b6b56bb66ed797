// SPDX-License-Identifier: Apache-2.0
//! Where every header, field, stack and union of a program lies among a packet's 64-bit slots.
//!
//! A header is one block of slots: validity (0 or 1), the length in bits of its varbit field if it has one,
//! then ceil(width/64) slots for each field, least significant limb first, always below 2^width. The elements of a stack lie
//! one after another at a fixed stride, and so do the members of a union, so that an element chosen at
//! run time is found by one multiplication.

use std::collections::HashMap;

use super::names::{find, find_id, no_such};
use crate::bits::limbs_for;
use crate::json::{fail, Json, Load, Unique};
use crate::pipeline::Std;

/// Index of a slot.
pub(crate) type Slot = u16;

/// Constant 0.
pub(crate) const ZERO: Slot = 0;
/// Constant 1.
pub(crate) const ONE: Slot = 1;

/// Widest field, bits; a bound for sanity.
const WIDTH_MAX: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct FieldType {
    pub name: String,
    /// Bits; of a varbit field the maximum.
    pub width: u32,
    pub signed: bool,
    pub varbit: bool,
    /// From the block's start.
    pub offset: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct HeaderType {
    pub name: String,
    pub fields: Vec<FieldType>,
    /// Slots of a block.
    pub slots: u16,
    /// Bits of all fields but the varbit one.
    pub fixed_bits: u32,
    /// Index of the varbit field.
    pub varbit: Option<usize>,
}

/// Limbs of a number from the most significant: slot, width ≤ 64.
pub(crate) fn slot_limbs(slot: Slot, width: u32) -> impl Iterator<Item = (Slot, u32)> {
    let limbs = (0..width.div_ceil(64)).rev();
    limbs.map(move |i| (slot + i as Slot, (width - i * 64).min(64)))
}

impl HeaderType {
    /// Block offset of the varbit field's length in bits.
    pub const VARBIT_BITS: u16 = 1;

    /// Bytes of all fields but the varbit one.
    pub fn fixed_bytes(&self) -> u32 {
        self.fixed_bits.div_ceil(8)
    }

    /// First slots and widths of the fields of a header at `base`, whose varbit field has so many bits.
    pub fn widths(&self, base: usize, varbit_bits: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.fields.iter().map(move |field| {
            let width = if field.varbit {
                varbit_bits
            } else {
                field.width
            };
            (base + usize::from(field.offset), width)
        })
    }

    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub name: String,
    pub ty: usize,
    /// First slot of the block.
    pub base: Slot,
    /// Slot that tells validity: the block's first, or the constant 1 for metadata.
    pub valid: Slot,
    pub metadata: bool,
    /// Offsets from `base` to the blocks of the other members of its union.
    pub siblings: Vec<i32>,
}

/// A header stack or a stack of unions.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub name: String,
    /// Members of one element: one for a header stack, several for a union stack.
    pub members: Vec<Member>,
    pub base: Slot,
    pub stride: u16,
    pub count: u16,
    /// Slot of the index of the first free element.
    pub next: Slot,
    pub is_union: bool,
}

/// A member of a union (or the only one of a header stack's element).
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub name: String,
    pub ty: usize,
    /// From the element's start.
    pub offset: u16,
    /// Offsets from this member to its siblings.
    pub siblings: Vec<i32>,
}

/// A field of a header instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub slot: Slot,
    pub width: u32,
    pub signed: bool,
    /// Validity of its header.
    pub valid: Slot,
    /// For a varbit field, the slot of its length in bits.
    pub varbit_bits: Option<Slot>,
}

#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    /// The headers of each union.
    pub unions: Vec<Vec<usize>>,
    /// Places of headers, stacks and unions, by their kind and name.
    names: HashMap<(&'static str, String), usize>,
    aliases: HashMap<String, (String, String)>,
    /// First slot that no block uses.
    pub end: u32,
    /// First slot of a header that is not metadata (metadata lies in 2..headers_start).
    pub headers_start: u32,
}

impl Layout {
    /// Reads `header_types`, `headers`, `header_stacks`, `header_unions`, `header_union_stacks`, `field_aliases`.
    pub fn from_json(root: &Json) -> Load<Layout> {
        let mut layout = Layout {
            end: 2,
            ..Layout::default()
        };
        let mut type_names = HashMap::new();
        let mut unique = Unique::new("header type");
        for json in root.get("header_types")?.items()? {
            unique.add_name_of(&json)?;
            let ty = header_type(&json)?;
            if layout.types.len() == usize::from(u16::MAX) {
                fail!(json, "a program has at most {} header types", u16::MAX);
            }
            type_names.insert(ty.name.clone(), layout.types.len());
            layout.types.push(ty);
        }
        let mut ids = HashMap::new();
        let headers = root.get("headers")?.items()?;
        let (mut unique, mut unique_ids) = (Unique::new("header"), Unique::new("header id"));
        for json in &headers {
            let type_json = json.get("header_type")?;
            let ty = find(&type_names, &type_json, "header type")?;
            let name = unique.add_name_of(json)?.to_string();
            let index = layout.headers.len();
            ids.insert(unique_ids.numbered(json)?, index);
            layout.names.insert(("header", name.clone()), index);
            let metadata = json.bool_or("metadata", false)?;
            layout.headers.push(Header {
                name,
                ty,
                base: 0,
                valid: ONE,
                metadata,
                siblings: Vec::new(),
            });
        }
        for (index, json) in headers.iter().enumerate() {
            if layout.headers[index].metadata {
                layout.place(json, index)?;
            }
        }
        layout.headers_start = layout.end;
        let mut unique = Unique::new("header stack");
        layout.place_unions(root, &ids, &mut unique)?;
        layout.place_stacks(root, &ids, &mut unique)?;
        for (index, json) in headers.iter().enumerate() {
            if layout.headers[index].base == 0 {
                layout.place(json, index)?;
            }
        }
        for json in root.list("field_aliases")? {
            let [from, to] = json.tuple()?;
            let [header, field] = to.tuple()?;
            let to = (header.str()?.to_string(), field.str()?.to_string());
            // p4c repeats them for every copy of `standard_metadata`.
            let known = layout.aliases.insert(from.str()?.to_string(), to.clone());
            if known.is_some_and(|known| known != to) {
                fail!(json, "an alias of this name leads to another field");
            }
        }
        Ok(layout)
    }

    /// Takes `count` slots.
    pub fn allocate(&mut self, json: &Json, count: u32) -> Load<Slot> {
        let slot = self.end;
        if slot + count > u32::from(Slot::MAX) {
            fail!(
                json,
                "headers and metadata need more than {} words",
                Slot::MAX
            );
        }
        self.end += count;
        Ok(slot as Slot)
    }

    fn place(&mut self, json: &Json, index: usize) -> Load<()> {
        let slots = self.types[self.headers[index].ty].slots;
        let base = self.allocate(json, u32::from(slots))?;
        let header = &mut self.headers[index];
        header.base = base;
        header.valid = if header.metadata { ONE } else { base };
        Ok(())
    }

    /// Places a header that is an element of a stack or a member of a union.
    fn place_part(&mut self, json: &Json, index: usize) -> Load<()> {
        let header = &self.headers[index];
        if header.metadata {
            fail!(json, "`{}` is metadata, not a header", header.name);
        }
        if header.base != 0 {
            fail!(json, "header `{}` is in two stacks or unions", header.name);
        }
        self.place(json, index)
    }

    fn place_unions<'a>(
        &mut self,
        root: &Json<'a>,
        ids: &HashMap<i64, usize>,
        stacks: &mut Unique<'a, &'a str>,
    ) -> Load<()> {
        let mut member_names: HashMap<String, Vec<String>> = HashMap::new();
        let mut unique = Unique::new("header union type");
        for json in root.list("header_union_types")? {
            let mut names = Vec::new();
            let mut unique_members = Unique::new("union member");
            for member in json.list("headers")? {
                let name_json = member.item(0)?;
                unique_members.add(name_json.str()?, &name_json)?;
                names.push(name_json.str()?.to_string());
            }
            member_names.insert(unique.add_name_of(&json)?.to_string(), names);
        }
        let mut union_ids = HashMap::new();
        let (mut unique, mut unique_ids) =
            (Unique::new("header union"), Unique::new("header union id"));
        for json in root.list("header_unions")? {
            let name = unique.add_name_of(&json)?.to_string();
            let mut headers = Vec::new();
            for id in json.list("header_ids")? {
                let header = find_id(ids, &id, "header")?;
                self.place_part(&id, header)?;
                headers.push(header);
            }
            json.charge((headers.len() as u64).pow(2) * 4, || {
                format!("header union `{name}` of {} members", headers.len())
            })?;
            union_ids.insert(unique_ids.numbered(&json)?, self.unions.len());
            self.names.insert(("header union", name), self.unions.len());
            let bases: Vec<i32> = headers
                .iter()
                .map(|&h| i32::from(self.headers[h].base))
                .collect();
            for (i, &header) in headers.iter().enumerate() {
                self.headers[header].siblings = siblings(&bases, i);
            }
            self.unions.push(headers);
        }
        for json in root.list("header_union_stacks")? {
            stacks.add_name_of(&json)?;
            let mut elements = Vec::new();
            for id in json.list("header_union_ids")? {
                let union = find_id(&union_ids, &id, "header union")?;
                elements.push(self.unions[union].clone());
            }
            let names = member_names.get(json.str_at("union_type")?);
            self.add_stack(&json, &elements, names.map_or(&[], Vec::as_slice), true)?;
        }
        Ok(())
    }

    fn place_stacks<'a>(
        &mut self,
        root: &Json<'a>,
        ids: &HashMap<i64, usize>,
        stacks: &mut Unique<'a, &'a str>,
    ) -> Load<()> {
        for json in root.list("header_stacks")? {
            stacks.add_name_of(&json)?;
            let mut elements = Vec::new();
            for id in json.get("header_ids")?.items()? {
                let header = find_id(ids, &id, "header")?;
                self.place_part(&id, header)?;
                elements.push(vec![header]);
            }
            self.add_stack(&json, &elements, &[], false)?;
        }
        Ok(())
    }

    /// A stack of elements that are placed already; each consists of the members of a union, or of one header.
    fn add_stack(
        &mut self,
        json: &Json,
        elements: &[Vec<usize>],
        names: &[String],
        is_union: bool,
    ) -> Load<()> {
        let Some(first) = elements.first() else {
            fail!(json, "a header stack has no element");
        };
        let ty = |&header: &usize| self.headers[header].ty;
        if elements
            .iter()
            .any(|e| !e.iter().map(ty).eq(first.iter().map(ty)))
        {
            fail!(json, "the elements of a header stack have different types");
        }
        let Some(&head) = first.first() else {
            fail!(json, "a header union has no member");
        };
        let base = self.headers[head].base;
        let members: Vec<Member> = (0..)
            .zip(first)
            .map(|(i, &header)| {
                let header = &self.headers[header];
                Member {
                    name: names.get::<usize>(i).cloned().unwrap_or_default(),
                    ty: header.ty,
                    offset: header.base - base,
                    siblings: header.siblings.clone(),
                }
            })
            .collect();
        let stride: u16 = members.iter().map(|m| self.types[m.ty].slots).sum();
        for (i, element) in (0..).zip(elements) {
            let expected = u64::from(base) + u64::from(stride) * i;
            if u64::from(self.headers[element[0]].base) != expected {
                fail!(
                    json,
                    "the unions of a stack must be declared one after another"
                );
            }
        }
        let next = self.allocate(json, 1)?;
        let name = json.str_at("name")?.to_string();
        self.names
            .insert(("header stack", name.clone()), self.stacks.len());
        self.stacks.push(Stack {
            name,
            members,
            base,
            stride,
            count: elements.len() as u16,
            next,
            is_union,
        });
        Ok(())
    }

    /// The place of what the JSON names: a header, header stack or header union.
    pub fn named(&self, what: &'static str, json: &Json) -> Load<usize> {
        let found = self.names.get(&(what, json.str()?.to_owned()));
        found.copied().ok_or_else(|| no_such(what, json))
    }

    /// The field that a `[header, field]` pair names; `$valid$` is a field of width 1.
    pub fn field(&self, json: &Json) -> Load<Field> {
        let [header, field] = json.tuple()?;
        let index = self.named("header", &header)?;
        let name = field.str()?;
        match self.field_of(index, name) {
            Some(found) => Ok(found),
            None => fail!(
                field,
                "header `{}` has no field `{name}`",
                self.headers[index].name
            ),
        }
    }

    /// The same for a field that is written: not a validity, and at least one bit.
    pub fn target(&self, json: &Json) -> Load<Field> {
        let field = self.field(json)?;
        if self.is_writable(&field) && field.width > 0 {
            return Ok(field);
        }
        fail!(json, "a field of at least one bit is expected")
    }

    /// False for `$valid$`, which setValid and setInvalid change.
    pub fn is_writable(&self, field: &Field) -> bool {
        let of_metadata = field.valid == ONE;
        field.slot > ONE && !(of_metadata && u32::from(field.slot) >= self.headers_start)
    }

    /// A field of a header by its name.
    pub fn field_of(&self, header: usize, name: &str) -> Option<Field> {
        let header = &self.headers[header];
        if name == "$valid$" {
            let valid = header.valid;
            return Some(Field {
                slot: valid,
                width: 1,
                signed: false,
                valid: ONE,
                varbit_bits: None,
            });
        }
        let ty = &self.types[header.ty];
        let field = &ty.fields[ty.field(name)?];
        Some(Field {
            slot: header.base + field.offset,
            width: field.width,
            signed: field.signed,
            valid: header.valid,
            varbit_bits: field
                .varbit
                .then_some(header.base + HeaderType::VARBIT_BITS),
        })
    }

    /// True for fields that p4c made for local variables and intermediate results: nothing outside the program sees them.
    fn is_local(&self, header: usize, field: &str) -> bool {
        let header = &self.headers[header];
        // p4c names the fields of user metadata `metadata_t.queue_id` or `userMetadata.queue_id`: those have a dot.
        header.metadata && header.name == "scalars" && !field.contains('.')
    }

    /// Every field's slot: (slot, width of the limb there, is local).
    pub fn slots(&self) -> impl Iterator<Item = (Slot, u32, bool)> + '_ {
        (0..self.headers.len()).flat_map(move |index| {
            let header = &self.headers[index];
            let fields = self.types[header.ty].fields.iter();
            fields.flat_map(move |field| {
                let local = self.is_local(index, &field.name);
                (0..limbs_for(field.width) as u16).map(move |limb| {
                    let width = (field.width - u32::from(limb) * 64).min(64);
                    (header.base + field.offset + limb, width, local)
                })
            })
        })
    }

    /// A field by its dotted name, aliases first; None when there is none, or it is the compiler's own.
    pub fn field_named(&self, name: &str) -> Option<Field> {
        if let Some((header, field)) = self.aliases.get(name) {
            return self.field_of(*self.names.get(&("header", header.clone()))?, field);
        }
        // Header names hold dots of their own (`hdr.ipv4` never, `scalars` with fields `userMetadata.x` always).
        name.match_indices('.').find_map(|(dot, _)| {
            let header = *self.names.get(&("header", name[..dot].to_owned()))?;
            let field = &name[dot + 1..];
            if self.is_local(header, field) {
                return None;
            }
            self.field_of(header, field)
        })
    }

    /// The field of `standard_metadata` under any of BMv2's names for it.
    pub fn std(&self, field: Std) -> Option<Field> {
        let (_, older, name) = Std::ALL[field as usize];
        let in_header = |header| self.field_named(&format!("{header}.{name}"));
        in_header(older).or_else(|| in_header("standard_metadata"))
    }

    /// The field of metadata whose name's last component is `name`, when exactly one has it.
    pub fn metadata_field_named(&self, name: &str) -> Option<Field> {
        let mut found = None;
        for (index, header) in self.headers.iter().enumerate().filter(|(_, h)| h.metadata) {
            if header.name == "standard_metadata" {
                continue;
            }
            let fields = self.types[header.ty].fields.iter();
            for field in fields.filter(|f| !self.is_local(index, &f.name)) {
                if field.name.rsplit('.').next() == Some(name) {
                    if found.is_some() {
                        return None;
                    }
                    found = self.field_of(index, &field.name);
                }
            }
        }
        found
    }
}

fn siblings(bases: &[i32], me: usize) -> Vec<i32> {
    (0..bases.len())
        .filter(|&i| i != me)
        .map(|i| bases[i] - bases[me])
        .collect()
}

fn header_type(json: &Json) -> Load<HeaderType> {
    let name = json.str_at("name")?.to_string();
    if let Some(length) = json.opt("length_exp") {
        fail!(length, "P4_14 headers with a length expression are not supported: use extract with two arguments");
    }
    let mut fields = Vec::new();
    let mut fixed_bits = 0u64;
    let mut varbit = None;
    let mut unique = Unique::new("field");
    for field in json.get("fields")?.items()? {
        let name_json = field.item(0)?;
        let field_name = name_json.str()?;
        if field_name == "$valid$" {
            fail!(name_json, "`$valid$` is the name of a header's validity");
        }
        unique.add(field_name, &name_json)?;
        let width_json = field.item(1)?;
        let is_varbit = width_json.is_str();
        let width = if is_varbit { 0 } else { width_json.u64()? };
        if width > WIDTH_MAX {
            fail!(width_json, "a field is at most {WIDTH_MAX} bits wide");
        }
        if is_varbit && varbit.replace(fields.len()).is_some() {
            fail!(field, "a header has at most one varbit field");
        }
        let parts = field.items()?;
        let signed = match parts.get(2) {
            Some(signed) => signed.bool().or_else(|_| Ok(signed.u64()? != 0))?,
            None => false,
        };
        if parts.len() > 3 {
            fail!(field, "expected [name, width] or [name, width, signed]: P4_14 saturating fields are not supported");
        }
        fixed_bits += width;
        fields.push(FieldType {
            name: field_name.to_string(),
            width: width as u32,
            signed,
            varbit: is_varbit,
            offset: 0,
        });
    }
    if let Some(index) = varbit {
        let max_bytes = json.opt("max_length").map_or(Ok(0), |j| j.u32())?;
        let width = (u64::from(max_bytes) * 8).saturating_sub(fixed_bits);
        if !(1..=WIDTH_MAX).contains(&width) {
            fail!(json, "a header with a varbit field needs `max_length` in bytes, which leaves the field 1 to {WIDTH_MAX} bits");
        }
        fields[index].width = width as u32;
    }
    let mut offset = 1 + u32::from(varbit.is_some());
    for field in &mut fields {
        field.offset = offset as u16;
        offset += limbs_for(field.width) as u32;
        if offset > u32::from(Slot::MAX) {
            fail!(
                json,
                "the header is too wide: a header has at most {} words of 64 bits",
                Slot::MAX
            );
        }
    }
    Ok(HeaderType {
        name,
        fields,
        slots: offset as u16,
        fixed_bits: fixed_bits as u32,
        varbit,
    })
}
