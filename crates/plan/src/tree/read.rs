//! Lets serde read typed values out of a tree.
//!
//! Keeps the order of tables; an error knows the place of the innermost value that could not be read.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{Node, Value};
use crate::problem::Span;

/// Why a value could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct TypeError {
    pub span: Option<Span>,
    pub message: String,
}

impl de::Error for TypeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { span: None, message: message.to_string() }
    }
}

impl<'de> IntoDeserializer<'de, TypeError> for &'de Node {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = TypeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        let result = match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Unusable(what) => Err(de::Error::custom(format_args!("{what} has no place here"))),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Table(table) => visitor.visit_map(MapDeserializer::new(
                table.entries.iter().map(|entry| (entry.key.as_str(), &entry.node)),
            )),
        };
        result.map_err(|error| self.placed(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        match &self.value {
            Value::String(text) => {
                visitor.visit_enum(text.as_str().into_deserializer()).map_err(|error| self.placed(error))
            }
            _ => Err(self.placed(de::Error::custom("expected a string"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl Node {
    fn placed(&self, error: TypeError) -> TypeError {
        TypeError { span: error.span.or_else(|| Some(self.span.clone())), ..error }
    }
}
