//! What the API server refuses of this API. Slinky leaves most of it to webhooks of its own, with the same
//! messages.
//!
//! A rule must not refuse what works with Slinky. What a rule cannot know is left to our webhook: the
//! namespace that a cluster's name is made of, the inside of claim templates, and other objects.

use crate::schema::rule::{Rule, rule};

/// What Go reads as a duration. Slinky cannot read an object at all in which it finds anything else.
macro_rules! go_duration {
    () => {
        r"^[+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
    };
}

/// What is used is `jwtKeyRef`, else `jwtHs256KeyRef`: the same key in the other field is no change. Neither
/// is a key that comes or goes, which happens together with `external`.
const SAME_JWT_KEY: Rule = rule(
    "!(has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)) || \
     !(has(oldSelf.jwtKeyRef) || has(oldSelf.jwtHs256KeyRef)) || \
     ((has(self.jwtKeyRef) ? self.jwtKeyRef.name : self.jwtHs256KeyRef.name) == \
     (has(oldSelf.jwtKeyRef) ? oldSelf.jwtKeyRef.name : oldSelf.jwtHs256KeyRef.name) && \
     (has(self.jwtKeyRef) ? self.jwtKeyRef.key : self.jwtHs256KeyRef.key) == \
     (has(oldSelf.jwtKeyRef) ? oldSelf.jwtKeyRef.key : oldSelf.jwtHs256KeyRef.key))",
    "cannot change jwtKeyRef after deployment: keep its name and key; \
     for another key change the content of the Secret",
);

/// Whether a key to sign tokens with is named, by whichever of the two fields counts.
macro_rules! jwt_key_named {
    () => {
        "(has(self.jwtKeyRef) ? self.jwtKeyRef.name != '' : has(self.jwtHs256KeyRef) && self.jwtHs256KeyRef.name != '')"
    };
}

const SLURM_KEY: Rule = rule(
    "self.external || (has(self.slurmKeyRef) && self.slurmKeyRef.name != '')",
    "slurmKeyRef must be set when external is false",
);
const JWT_KEY: Rule = rule(
    concat!("self.external || ", jwt_key_named!()),
    "jwtKeyRef or jwtHs256KeyRef must be set when external is false",
);
const EXTERNAL_CONFIG: Rule = rule(
    "self.external ? has(self.externalConfig) : true",
    "externalConfig must be set when external is true",
);

/// Whether the state of the cluster outlives the pod. Without a word about it, it does.
macro_rules! persistent {
    ($spec:literal) => {
        concat!("(!has(", $spec, ".persistence) || ", $spec, ".persistence.enabled)")
    };
}

/// The claim that is named for the state of the cluster, or nothing.
macro_rules! existing_claim {
    ($spec:literal) => {
        concat!(
            "(has(",
            $spec,
            ".persistence) && has(",
            $spec,
            ".persistence.existingClaim) ? ",
            $spec,
            ".persistence.existingClaim : '')"
        )
    };
}

pub(super) const CONTROLLER: &[Rule] = &[
    SLURM_KEY,
    JWT_KEY,
    EXTERNAL_CONFIG,
    rule(
        concat!(
            "!has(self.ha) || !self.ha.enabled || (",
            persistent!("self"),
            " && ",
            existing_claim!("self"),
            " != '')"
        ),
        "slurm high availability (HA) mode requires existing PVC with an access mode of ReadWriteMany",
    ),
    SAME_JWT_KEY,
    rule(
        concat!(persistent!("self"), " == ", persistent!("oldSelf")),
        "cannot change persistence.enabled after deployment",
    )
    .at(".persistence.enabled"),
    rule(
        concat!(
            "!",
            persistent!("self"),
            " || ",
            existing_claim!("self"),
            " == ",
            existing_claim!("oldSelf")
        ),
        "cannot change persistence.existingClaim after deployment",
    )
    .at(".persistence.existingClaim"),
    rule(
        concat!(
            "self.external || !",
            persistent!("self"),
            " || ",
            existing_claim!("self"),
            " != '' || (has(self.persistence) && has(self.persistence.accessModes) && \
             self.persistence.accessModes.size() > 0 && has(self.persistence.resources) && \
             has(self.persistence.resources.requests) && 'storage' in self.persistence.resources.requests)"
        ),
        "persistence needs accessModes and resources.requests.storage for the claim that is made: set both, \
         name an existingClaim, or set enabled to false",
    )
    .at(".persistence"),
];

/// Empty is the computed name, of which a rule does not see the namespace.
pub(super) const CLUSTER_NAME: Rule =
    rule("self == '' || oldSelf == '' || self == oldSelf", "cannot change ClusterName after deployment");

pub(super) const SAME_SLURM_KEY: Rule =
    rule("self.name == oldSelf.name", "cannot change SlurmKeyRef after deployment");

pub(super) const ACCOUNTING: &[Rule] = &[
    SLURM_KEY,
    JWT_KEY,
    EXTERNAL_CONFIG,
    SAME_JWT_KEY,
    rule(
        "self.external || (has(self.storageConfig) && self.storageConfig.passwordKeyRef.name != '')",
        "storageConfig with the name of a Secret in passwordKeyRef must be set when external is false",
    )
    .at(".storageConfig"),
];

pub(super) const TOKEN: &[Rule] =
    &[rule(jwt_key_named!(), "jwtKeyRef or jwtHs256KeyRef must be set"), SAME_JWT_KEY];

pub(super) const CONTROLLER_NAMED: Rule = rule(
    "self.name != ''",
    "controllerRef.name must not be empty: give the name of a Controller in the same namespace",
);

pub(super) const SAME_CONTROLLER: Rule =
    rule("self.name == oldSelf.name", "cannot change controllerRef after deployment");

pub(super) const SSSD_CONF_NAMED: Rule = rule(
    "self.name != ''",
    "sssdConfRef.name must not be empty: give the name of the Secret that holds sssd.conf",
);

pub(super) const SSH: Rule = rule(
    "!self.enabled || self.sssdConfRef.name != ''",
    "sssdConfRef.name must not be empty when ssh is enabled: \
     give the name of the Secret that holds sssd.conf",
);

/// The number of a worker follows it, so it may end in a dash.
pub(super) const HOSTNAME: Rule = rule(
    r"self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*-*$')",
    "hostname must be the beginning of a host name: lower-case letters, digits, dashes and dots, with a letter or digit first",
);

/// Only whether one came or went: the same claim can be written in several ways, and our webhook compares
/// what they mean.
pub(super) const CLAIM_TEMPLATES: Rule = rule(
    "(has(self.volumeClaimTemplates) ? self.volumeClaimTemplates.size() : 0) == \
     (has(oldSelf.volumeClaimTemplates) ? oldSelf.volumeClaimTemplates.size() : 0)",
    "cannot change volumeClaimTemplates after deployment",
);

/// A word between spaces without an equals sign. Other blanks than spaces are not looked at.
pub(super) const EXTRA_CONF: Rule = rule(
    r"!self.matches('(^| )[^\\s=]+( |$)')",
    "extraConf must be Key=Value pairs with spaces between them, for example Weight=10 Gres=gpu:8: \
     every word needs an equals sign",
);

pub(super) const UPDATE_STRATEGY: &[Rule] = &[
    rule(
        "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && \
         has(self.scheduledUpdate.startTime) && has(self.scheduledUpdate.duration))",
        "scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate",
    ),
    rule(
        "self.type != 'RollingUpdate' || !has(self.rollingUpdate) || \
         (type(self.rollingUpdate.maxUnavailable) == int ? \
         self.rollingUpdate.maxUnavailable >= 1 : self.rollingUpdate.maxUnavailable != '0%')",
        "maxUnavailable must be at least 1 or more than 0%: with none at all no worker would be \
         updated; use type: OnDelete for that",
    )
    .at(".rollingUpdate.maxUnavailable"),
    rule(
        concat!(
            "self.type != 'ScheduledUpdate' || !has(self.scheduledUpdate) || \
             !self.scheduledUpdate.duration.matches('",
            go_duration!(),
            "') || duration(self.scheduledUpdate.duration) >= duration('1m')"
        ),
        "scheduledUpdate.duration must be at least 1m: Slurm counts reservations in minutes",
    )
    .at(".scheduledUpdate.duration"),
];

pub(super) const WINDOW: Rule = rule(
    concat!("self.matches('", go_duration!(), "')"),
    "scheduledUpdate.duration must be a number with a unit, or several of them: 30m, 2h, 1h30m",
);

pub(super) const LIFETIME: Rule = rule(
    concat!("self.matches('", go_duration!(), "')"),
    "lifetime must be a number with a unit, or several of them: 15m, 24h, 1h30m",
);

/// Whether a field, if it is given, is a number of pods or a share of them.
macro_rules! number_or_share {
    ($field:literal) => {
        concat!(
            "(!has(",
            $field,
            ") || (type(",
            $field,
            ") == int ? ",
            $field,
            " >= 0 : ",
            $field,
            ".matches('^[0-9]+%$')))"
        )
    };
}

pub(super) const STRATEGY: &[Rule] = &[
    rule(
        "!has(self.type) || self.type in ['', 'RollingUpdate', 'Recreate']",
        "strategy.type must be RollingUpdate or Recreate",
    )
    .at(".type"),
    rule(
        "!has(self.type) || self.type != 'Recreate' || !has(self.rollingUpdate)",
        "strategy.rollingUpdate must not be set with type: Recreate: remove it",
    )
    .at(".rollingUpdate"),
    rule(
        concat!(
            "!has(self.rollingUpdate) || (",
            number_or_share!("self.rollingUpdate.maxSurge"),
            " && ",
            number_or_share!("self.rollingUpdate.maxUnavailable"),
            ")"
        ),
        "maxSurge and maxUnavailable must be a number from 0 on or a share such as 25%",
    )
    .at(".rollingUpdate"),
    rule(
        "!has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || !has(self.rollingUpdate.maxUnavailable) || \
         [self.rollingUpdate.maxSurge, self.rollingUpdate.maxUnavailable].exists(some, type(some) == int ? some != 0 : some != '0%')",
        "maxSurge and maxUnavailable must not both be zero: no pod could be replaced",
    )
    .at(".rollingUpdate"),
];
