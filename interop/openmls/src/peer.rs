//! OpenMLS behind one JSON request and one JSON answer a line.
//!
//! Requests name an operation, a client and byte strings in hex; an answer is
//! an object with "ok": true, or {"ok": false, "error": …}. The driver
//! (child_test.go) speaks the same lines to every peer, so each peer's file
//! reads as a list of what it can do.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Instant;

use openmls::prelude::tls_codec::{Deserialize as _, Serialize as _};
use openmls::prelude::*;
use openmls::schedule::{ExternalPsk, PreSharedKeyId, Psk};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;
use openmls_traits::OpenMlsProvider;
use serde_json::{json, Map, Value};

type Answer = Result<Map<String, Value>, String>;

/// One client with at most one group, on one of the crypto providers.
struct Client<P: OpenMlsProvider + Default> {
    provider: P,
    suite: Ciphersuite,
    signer: SignatureKeyPair,
    credential: CredentialWithKey,
    group: Option<MlsGroup>,
}

fn hex(b: &[u8]) -> String {
    b.iter().map(|x| format!("{x:02x}")).collect()
}

fn unhex(s: &str) -> Result<Vec<u8>, String> {
    if s.len() % 2 != 0 {
        return Err("odd hex".into());
    }
    (0..s.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&s[i..i + 2], 16).map_err(|e| e.to_string()))
        .collect()
}

fn bytes(request: &Value, key: &str) -> Result<Vec<u8>, String> {
    unhex(request[key].as_str().ok_or(format!("missing {key}"))?)
}

fn list(request: &Value, key: &str) -> Result<Vec<Vec<u8>>, String> {
    request[key].as_array().ok_or(format!("missing {key}"))?.iter().map(|v| unhex(v.as_str().unwrap_or("x"))).collect()
}

fn why<E: std::fmt::Debug>(e: E) -> String {
    format!("{e:?}")
}

/// Nanoseconds since start: every answer to an operation that is compared
/// carries them, so that the pipe between driver and peer does not count.
fn since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

fn object(v: Value) -> Map<String, Value> {
    v.as_object().cloned().unwrap_or_default()
}

fn message(raw: &[u8]) -> Result<MlsMessageBodyIn, String> {
    Ok(MlsMessageIn::tls_deserialize_exact(raw).map_err(why)?.extract())
}

fn capabilities() -> Capabilities {
    Capabilities::new(
        None,
        Some(&[Ciphersuite::MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519, Ciphersuite::MLS_128_DHKEMP256_AES128GCM_SHA256_P256, Ciphersuite::MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519]),
        Some(&[ExtensionType::AppDataDictionary]),
        Some(&[ProposalType::SelfRemove, ProposalType::AppDataUpdate]),
        None,
    )
}

fn join_config() -> MlsGroupJoinConfig {
    join_config_with(MIXED_PLAINTEXT_WIRE_FORMAT_POLICY)
}

fn join_config_with(policy: WireFormatPolicy) -> MlsGroupJoinConfig {
    MlsGroupJoinConfig::builder()
        .wire_format_policy(policy)
        .use_ratchet_tree_extension(true)
        .sender_ratchet_configuration(SenderRatchetConfiguration::new(20, 1000))
        .max_past_epochs(2)
        .build()
}

impl<P: OpenMlsProvider + Default> Client<P> {
    fn new(suite: u16, name: Vec<u8>) -> Result<Self, String> {
        let suite = Ciphersuite::try_from(suite).map_err(why)?;
        let provider = P::default();
        let signer = SignatureKeyPair::new(suite.signature_algorithm()).map_err(why)?;
        signer.store(provider.storage()).map_err(why)?;
        let credential = CredentialWithKey {
            credential: BasicCredential::new(name).into(),
            signature_key: signer.to_public_vec().into(),
        };
        Ok(Client { provider, suite, signer, credential, group: None })
    }

    fn group(&mut self) -> Result<(&mut MlsGroup, &P, &SignatureKeyPair), String> {
        Ok((self.group.as_mut().ok_or("no group")?, &self.provider, &self.signer))
    }

    fn key_package(&self) -> Answer {
        let bundle = KeyPackage::builder()
            .leaf_node_capabilities(capabilities())
            .build(self.suite, &self.provider, &self.signer, self.credential.clone())
            .map_err(why)?;
        let out = MlsMessageOut::from(bundle.key_package().clone());
        Ok(object(json!({"key_package": hex(&out.tls_serialize_detached().map_err(why)?)})))
    }

    fn create(&mut self, id: Vec<u8>) -> Answer {
        let config = MlsGroupCreateConfig::builder()
            .ciphersuite(self.suite)
            .capabilities(capabilities())
            .wire_format_policy(MIXED_PLAINTEXT_WIRE_FORMAT_POLICY)
            .use_ratchet_tree_extension(true)
            .sender_ratchet_configuration(SenderRatchetConfiguration::new(20, 1000))
            .max_past_epochs(2)
            .build();
        let start = Instant::now();
        let group = MlsGroup::new_with_group_id(&self.provider, &self.signer, &config, GroupId::from_slice(&id), self.credential.clone()).map_err(why)?;
        self.group = Some(group);
        Ok(object(json!({"ns": since(start)})))
    }

    /// One commit with Adds, Removes and PSKs by value and every held proposal by reference; applied at once.
    fn commit(&mut self, request: &Value) -> Answer {
        let adds = list(request, "adds").unwrap_or_default();
        let removes: Vec<LeafNodeIndex> = request["removes"].as_array().cloned().unwrap_or_default().iter().map(|v| LeafNodeIndex::new(v.as_u64().unwrap_or(0) as u32)).collect();
        let psks = list(request, "psks").unwrap_or_default();
        let update = request["update"].as_bool().unwrap_or(false);
        let private = request["private"].as_bool().unwrap_or(false);
        let suite = self.suite;
        let (group, provider, signer) = self.group()?;
        if private {
            group.set_configuration(provider.storage(), &join_config_with(MIXED_CIPHERTEXT_WIRE_FORMAT_POLICY)).map_err(why)?;
        }
        let start = Instant::now();
        let mut packages = Vec::new();
        for raw in adds {
            match message(&raw)? {
                MlsMessageBodyIn::KeyPackage(kp) => packages.push(kp.validate(provider.crypto(), ProtocolVersion::Mls10).map_err(why)?),
                _ => return Err("not a key package".into()),
            }
        }
        let mut proposals = Vec::new();
        for id in psks {
            let psk = PreSharedKeyId::new(suite, provider.rand(), Psk::External(ExternalPsk::new(id))).map_err(why)?;
            proposals.push(Proposal::PreSharedKey(Box::new(PreSharedKeyProposal::new(psk))));
        }
        let bundle = group
            .commit_builder()
            .propose_adds(packages)
            .propose_removals(removes)
            .add_proposals(proposals)
            .force_self_update(update)
            .load_psks(provider.storage())
            .map_err(why)?
            .build(provider.rand(), provider.crypto(), signer, |_| true)
            .map_err(why)?
            .stage_commit(provider)
            .map_err(why)?;
        let (commit, welcome, _) = bundle.into_messages();
        group.merge_pending_commit(provider).map_err(why)?;
        let ns = since(start);
        if private {
            group.set_configuration(provider.storage(), &join_config()).map_err(why)?;
        }
        let mut answer = object(json!({"ns": ns, "commit": hex(&commit.tls_serialize_detached().map_err(why)?)}));
        if let Some(w) = welcome {
            answer.insert("welcome".into(), json!(hex(&w.tls_serialize_detached().map_err(why)?)));
        }
        Ok(answer)
    }

    fn join(&mut self, welcome: &[u8]) -> Answer {
        let start = Instant::now();
        let MlsMessageBodyIn::Welcome(welcome) = message(welcome)? else { return Err("not a Welcome".into()) };
        let staged = StagedWelcome::new_from_welcome(&self.provider, &join_config(), welcome, None).map_err(why)?;
        self.group = Some(staged.into_group(&self.provider).map_err(why)?);
        Ok(object(json!({"ns": since(start)})))
    }

    fn handle(&mut self, raw: &[u8]) -> Answer {
        let start = Instant::now();
        let body = message(raw)?;
        let (group, provider, _) = self.group()?;
        let protocol: ProtocolMessage = match body {
            MlsMessageBodyIn::PublicMessage(m) => m.into(),
            MlsMessageBodyIn::PrivateMessage(m) => m.into(),
            _ => return Err("not a group message".into()),
        };
        match group.process_message(provider, protocol).map_err(why)?.into_content() {
            ProcessedMessageContent::ApplicationMessage(m) => Ok(object(json!({"kind": "application", "ns": since(start), "data": hex(&m.into_bytes())}))),
            ProcessedMessageContent::ProposalMessage(p) => {
                group.store_pending_proposal(provider.storage(), *p).map_err(why)?;
                Ok(object(json!({"kind": "proposal"})))
            }
            ProcessedMessageContent::StagedCommitMessage(c) => {
                group.merge_staged_commit(provider, *c).map_err(why)?;
                Ok(object(json!({"kind": "commit", "ns": since(start)})))
            }
            ProcessedMessageContent::ExternalJoinProposalMessage(_) => Err("unexpected external proposal".into()),
            _ => Err("unexpected content".into()),
        }
    }

    fn propose(&mut self, request: &Value) -> Answer {
        let suite = self.suite;
        let (group, provider, signer) = self.group()?;
        let out = match request["type"].as_str().unwrap_or("") {
            "add" => match message(&bytes(request, "key_package")?)? {
                MlsMessageBodyIn::KeyPackage(kp) => {
                    let kp = kp.validate(provider.crypto(), ProtocolVersion::Mls10).map_err(why)?;
                    group.propose_add_member(provider, signer, &kp).map_err(why)?.0
                }
                _ => return Err("not a key package".into()),
            },
            "remove" => {
                let leaf = LeafNodeIndex::new(request["leaf"].as_u64().ok_or("missing leaf")? as u32);
                group.propose_remove_member(provider, signer, leaf).map_err(why)?.0
            }
            "update" => group.propose_self_update(provider, signer, LeafNodeParameters::default()).map_err(why)?.0,
            "psk" => {
                let psk = Psk::External(ExternalPsk::new(bytes(request, "id")?));
                let psk = PreSharedKeyId::new(suite, provider.rand(), psk).map_err(why)?;
                group.propose_pre_shared_key(provider, signer, psk).map_err(why)?.0
            }
            "self_remove" => group.leave_group_via_self_remove(provider, signer).map_err(why)?,
            t => return Err(format!("unknown proposal {t}")),
        };
        Ok(object(json!({"proposal": hex(&out.tls_serialize_detached().map_err(why)?)})))
    }

    fn seal(&mut self, data: &[u8]) -> Answer {
        let (group, provider, signer) = self.group()?;
        let start = Instant::now();
        let out = group.create_message(provider, signer, data).map_err(why)?;
        Ok(object(json!({"ns": since(start), "message": hex(&out.tls_serialize_detached().map_err(why)?)})))
    }

    /// Reads the group back from the provider's storage, as after a restart.
    fn load(&mut self) -> Answer {
        let id = self.group()?.0.group_id().clone();
        let start = Instant::now();
        let group = MlsGroup::load(self.provider.storage(), &id).map_err(why)?.ok_or("not stored")?;
        let ns = since(start);
        self.group = Some(group);
        Ok(object(json!({"ns": ns})))
    }

    fn group_info(&mut self) -> Answer {
        let (group, provider, signer) = self.group()?;
        let out = group.export_group_info(provider.crypto(), signer, true).map_err(why)?;
        Ok(object(json!({"group_info": hex(&out.tls_serialize_detached().map_err(why)?)})))
    }

    fn external_join(&mut self, info: &[u8]) -> Answer {
        let MlsMessageBodyIn::GroupInfo(info) = message(info)? else { return Err("not a GroupInfo".into()) };
        let (group, bundle) = MlsGroup::external_commit_builder()
            .with_config(join_config())
            .build_group(&self.provider, info, self.credential.clone())
            .map_err(why)?
            .leaf_node_parameters(LeafNodeParameters::builder().with_capabilities(capabilities()).build())
            .load_psks(self.provider.storage())
            .map_err(why)?
            .build(self.provider.rand(), self.provider.crypto(), &self.signer, |_| true)
            .map_err(why)?
            .finalize(&self.provider)
            .map_err(why)?;
        self.group = Some(group);
        let (commit, _, _) = bundle.into_messages();
        Ok(object(json!({"commit": hex(&commit.tls_serialize_detached().map_err(why)?)})))
    }

    fn store_psk(&mut self, id: Vec<u8>, secret: &[u8]) -> Answer {
        let psk = PreSharedKeyId::new(self.suite, self.provider.rand(), Psk::External(ExternalPsk::new(id))).map_err(why)?;
        psk.store(&self.provider, secret).map_err(why)?;
        Ok(Map::new())
    }

    fn state(&mut self) -> Answer {
        let (group, provider, _) = self.group()?;
        if !group.is_active() {
            return Ok(object(json!({"active": false})));
        }
        let exported = group.export_secret(provider.crypto(), "interop", b"context", 32).map_err(why)?;
        let members: Vec<Value> = group
            .members()
            .map(|m| json!({"leaf": m.index.u32(), "identity": hex(m.credential.serialized_content())}))
            .collect();
        Ok(object(json!({
            "epoch": group.epoch().as_u64(), "authenticator": hex(group.epoch_authenticator().as_slice()),
            "exported": hex(&exported), "leaf": group.own_leaf_index().u32(),
            "active": true, "members": members,
        })))
    }
}

/// What a client does with an operation, whatever its provider.
trait Peer {
    fn run(&mut self, op: &str, request: &Value) -> Answer;
}

impl<P: OpenMlsProvider + Default> Peer for Client<P> {
    fn run(&mut self, op: &str, request: &Value) -> Answer {
        match op {
            "key_package" => self.key_package(),
            "create" => self.create(bytes(request, "group")?),
            "commit" => self.commit(request),
            "join" => self.join(&bytes(request, "welcome")?),
            "handle" => self.handle(&bytes(request, "message")?),
            "propose" => self.propose(request),
            "seal" => self.seal(&bytes(request, "data")?),
            "load" => self.load(),
            "group_info" => self.group_info(),
            "external_join" => self.external_join(&bytes(request, "group_info")?),
            "psk" => self.store_psk(bytes(request, "id")?, &bytes(request, "secret")?),
            "state" => self.state(),
            _ => Err(format!("unknown operation {op}")),
        }
    }
}

fn answer(clients: &mut HashMap<String, Box<dyn Peer>>, request: &Value) -> Answer {
    let op = request["op"].as_str().unwrap_or("");
    let name = request["client"].as_str().unwrap_or("").to_string();
    if op == "info" {
        return Ok(object(json!({"peer": "OpenMLS 0.9.2", "suites": [1, 2, 3],
            "can": [
                "create", "add", "remove", "remove_refilled", "update", "join", "messages", "late_messages", "past_epoch",
                "private_handshake", "propose_add", "propose_remove", "propose_update", "propose_psk",
                "psk", "external_join", "resync", "self_remove", "load"]})));
    }
    if op == "new" {
        let suite = request["suite"].as_u64().ok_or("missing suite")? as u16;
        let client: Box<dyn Peer> = match request["provider"].as_str() {
            Some("libcrux") => Box::new(Client::<openmls_libcrux_crypto::Provider>::new(suite, name.clone().into_bytes())?),
            _ => Box::new(Client::<OpenMlsRustCrypto>::new(suite, name.clone().into_bytes())?),
        };
        clients.insert(name, client);
        return Ok(Map::new());
    }
    if op == "drop" {
        clients.remove(&name);
        return Ok(Map::new());
    }
    if op == "forget" {
        clients.clear();
        return Ok(Map::new());
    }
    clients.get_mut(&name).ok_or("unknown client")?.run(op, request)
}

fn main() {
    let mut clients = HashMap::new();
    let stdin = std::io::stdin();
    let mut stdout = std::io::stdout().lock();
    for line in stdin.lock().lines() {
        let Ok(line) = line else { break };
        let result = match serde_json::from_str::<Value>(&line) {
            Ok(request) => answer(&mut clients, &request),
            Err(e) => Err(e.to_string()),
        };
        let out = match result {
            Ok(mut m) => {
                m.insert("ok".into(), json!(true));
                Value::Object(m)
            }
            Err(e) => json!({"ok": false, "error": e}),
        };
        if writeln!(stdout, "{out}").and_then(|_| stdout.flush()).is_err() {
            break;
        }
    }
}
