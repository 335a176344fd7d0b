//! Structs that name some fields of a larger JSON object. What they do not name is skipped without being built.

/// A struct in which every field may be missing on the wire, or `null`: both are the field's default. Go writes `null`
/// for some empty lists, and one odd field of one object must not cost the whole object.
macro_rules! lean {
    (
        $(#[$of_all:meta])*
        $seen:vis struct $name:ident {
            $($(#[$of_one:meta])* $field_seen:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$of_all])*
        #[derive(Debug, PartialEq, Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        $seen struct $name {
            $($(#[$of_one])* #[serde(deserialize_with = "crate::meta::null_is_empty")] $field_seen $field: $type,)*
        }
    };
}

pub(crate) use lean;
