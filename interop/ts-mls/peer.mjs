// ts-mls behind one JSON request and one JSON answer a line: the same lines as
// the OpenMLS peer's, so that one driver (child_test.go) speaks to both.
import { createInterface } from "node:readline"
import {
  acceptAll, branchGroup, createApplicationMessage, createCommit, createGroup,
  createGroupInfoWithExternalPubAndRatchetTree, createProposal, decodeMlsMessage, defaultCapabilities,
  decodeGroupState, defaultLifetime, encodeGroupState, encodeMlsMessage, generateKeyPackageWithKey, getCiphersuiteFromName,
  getCiphersuiteImpl, joinGroup, joinGroupExternal, joinGroupFromBranch, joinGroupFromReinit, makePskIndex,
  mlsExporter, processMessage, reinitCreateNewGroup, reinitGroup, ciphersuites,
} from "ts-mls"
import { createGroupInfo } from "ts-mls/createCommit.js"
import { decodeRatchetTree } from "ts-mls/ratchetTree.js"
import { p256, p384, p521 } from "@noble/curves/nist.js"

const unhex = (s) => new Uint8Array(Buffer.from(s, "hex"))
const hex = (b) => Buffer.from(b).toString("hex")
const suiteName = (id) => Object.keys(ciphersuites).find((name) => ciphersuites[name] === id)
const clients = new Map()

// What the suites of RFC 9420 fix and the library leaves to its caller: ECDSA
// public keys are uncompressed points (Section 5.1.1), and the external_pub
// extension holds a vector (Section 12.4.3.2).
const curves = { P256: p256, P384: p384, P521: p521 }
const publicKeySize = { 1: 32, 2: 65, 3: 32, 4: 56, 5: 133, 6: 56, 7: 97 }

async function signatureKeys(impl) {
  const pair = await impl.signature.keygen()
  const curve = curves[impl.name.split("_").at(-1)]
  if (curve) pair.publicKey = curve.Point.fromBytes(pair.publicKey).toBytes(false)
  return pair
}

/** A vector's length before its bytes (Section 2.1.2), for fewer than 16384. */
const vector = (b) => new Uint8Array(b.length < 64 ? [b.length, ...b] : [0x40 | (b.length >> 8), b.length & 255, ...b])

/** An implementation that reads external_pub as the vector it is. */
function readingVectors(impl) {
  const size = publicKeySize[ciphersuites[impl.name]]
  const importPublicKey = (raw) => impl.hpke.importPublicKey(raw.length > size ? raw.slice(raw.length - size) : raw)
  return { ...impl, hpke: { ...impl.hpke, importPublicKey } }
}

async function groupInfo(c) {
  const made = await createGroupInfoWithExternalPubAndRatchetTree(c.state, [], c.impl)
  const extensions = made.extensions.map((e) => (e.extensionType === "external_pub" ? { ...e, extensionData: vector(e.extensionData) } : e))
  return createGroupInfo(c.state.groupContext, c.state.confirmationTag, c.state, extensions, c.impl)
}

function decode(raw, wireformat) {
  const decoded = decodeMlsMessage(unhex(raw), 0)
  if (!decoded || decoded[1] !== raw.length / 2) throw new Error("not one MLSMessage")
  if (wireformat && decoded[0].wireformat !== wireformat) throw new Error(`not ${wireformat} but ${decoded[0].wireformat}`)
  return decoded[0]
}

const encode = (body) => hex(encodeMlsMessage({ version: "mls10", ...body }))
const keyPackageOf = (raw) => decode(raw, "mls_key_package").keyPackage
const welcomeOf = (raw) => decode(raw, "mls_welcome").welcome

/** The keys of a client in one cipher suite. */
class Keys {
  constructor(name, impl, signature) {
    this.name = name
    this.impl = impl
    this.signature = signature
    this.pairs = [] // both halves of every key package that was made
  }

  static async of(name, suite) {
    const impl = await getCiphersuiteImpl(getCiphersuiteFromName(suiteName(suite)))
    return new Keys(name, impl, await signatureKeys(impl))
  }

  async pair() {
    const credential = { credentialType: "basic", identity: new TextEncoder().encode(this.name) }
    const pair = await generateKeyPackageWithKey(credential, defaultCapabilities(), defaultLifetime, [], this.signature, this.impl)
    this.pairs.push(pair)
    return pair
  }

  async keyPackage() {
    return encode({ wireformat: "mls_key_package", keyPackage: (await this.pair()).publicPackage })
  }
}

/** The tree that came beside a Welcome, if one did. */
const treeBeside = (raw) => (raw ? decodeRatchetTree(unhex(raw), 0)[0] : undefined)

class Client {
  constructor(keys) {
    this.keys = keys
    this.psks = {}
  }

  get impl() {
    return this.keys.impl
  }

  pskIndex() {
    return makePskIndex(this.state, this.psks)
  }

  /** Tries each package of this client until one opens the Welcome. */
  async open(join) {
    let failure = new Error("no key package was made")
    for (const pair of this.keys.pairs) {
      try {
        this.state = await join(pair)
        return
      } catch (e) {
        failure = e
      }
    }
    throw failure
  }

  /** Applies a commit made here and answers with it and its Welcome. */
  finish(result) {
    this.state = result.newState
    const answer = { commit: encode(result.commit) }
    if (result.welcome) answer.welcome = encode({ wireformat: "mls_welcome", welcome: result.welcome })
    return answer
  }
}

const since = (start) => Number(process.hrtime.bigint() - start)

const externalPSK = (c, id) => ({
  proposalType: "psk",
  psk: { preSharedKeyId: { psktype: "external", pskId: unhex(id), pskNonce: c.impl.rng.randomBytes(c.impl.kdf.size) } },
})

/** The tree of a group, for those who join by a Welcome without it. */
async function treeOf(c) {
  const info = await createGroupInfoWithExternalPubAndRatchetTree(c.state, [], c.impl)
  return hex(info.extensions.find((e) => e.extensionType === "ratchet_tree").extensionData)
}

const operations = {
  info: async () => ({ peer: "ts-mls 1.6.4", suites: [1, 2, 3, 4, 5, 6, 7], can: [
    "create", "add", "remove", "update", "join", "messages", "late_messages", "past_epoch", "private_handshake",
    "propose_add", "propose_remove", "propose_psk", "psk", "external_join", "resync", "reinit", "branch", "load",
  ] }),
  new: async (_, r) => {
    clients.set(r.client, new Client(await Keys.of(r.client, r.suite)))
  },
  forget: async () => clients.clear(),
  key_package: async (c) => ({ key_package: await c.keys.keyPackage() }),
  /** A package for a group that follows this one, in its cipher suite. */
  successor_package: async (c, r) => {
    c.next = await Keys.of(c.keys.name, r.suite)
    return { key_package: await c.next.keyPackage() }
  },
  create: async (c, r) => {
    const pair = await c.keys.pair()
    c.state = await createGroup(unhex(r.group), pair.publicPackage, pair.privatePackage, [], c.impl)
  },
  commit: async (c, r) => {
    const extraProposals = [
      ...(r.adds ?? []).map((raw) => ({ proposalType: "add", add: { keyPackage: keyPackageOf(raw) } })),
      ...(r.removes ?? []).map((leaf) => ({ proposalType: "remove", remove: { removed: leaf } })),
      ...(r.psks ?? []).map((id) => externalPSK(c, id)),
    ]
    const context = { state: c.state, cipherSuite: c.impl, pskIndex: c.pskIndex() }
    const start = process.hrtime.bigint()
    const result = await createCommit(context, { extraProposals, wireAsPublicMessage: !r.private, ratchetTreeExtension: true })
    return { ...c.finish(result), ns: since(start) }
  },
  join: async (c, r) => {
    const welcome = welcomeOf(r.welcome)
    await c.open((pair) => joinGroup(welcome, pair.publicPackage, pair.privatePackage, makePskIndex(undefined, c.psks), c.impl))
  },
  handle: async (c, r) => {
    const message = decode(r.message)
    const result = await processMessage(message, c.state, c.pskIndex(), acceptAll, c.impl)
    c.state = result.newState
    if (result.kind === "applicationMessage") return { kind: "application", data: hex(result.message) }
    return { kind: message.publicMessage?.content.contentType ?? "handshake" }
  },
  propose: async (c, r) => {
    const proposal = {
      add: () => ({ proposalType: "add", add: { keyPackage: keyPackageOf(r.key_package) } }),
      remove: () => ({ proposalType: "remove", remove: { removed: r.leaf } }),
      psk: () => externalPSK(c, r.id),
    }[r.type]
    if (!proposal) throw new Error(`cannot propose ${r.type}`)
    const result = await createProposal(c.state, true, proposal(), c.impl)
    c.state = result.newState
    return { proposal: encode(result.message) }
  },
  seal: async (c, r) => {
    const result = await createApplicationMessage(c.state, unhex(r.data), c.impl)
    c.state = result.newState
    return { message: encode({ wireformat: "mls_private_message", privateMessage: result.privateMessage }) }
  },
  group_info: async (c) => ({ group_info: encode({ wireformat: "mls_group_info", groupInfo: await groupInfo(c) }) }),
  external_join: async (c, r) => {
    const pair = await c.keys.pair()
    const { groupInfo } = decode(r.group_info, "mls_group_info")
    const result = await joinGroupExternal(groupInfo, pair.publicPackage, pair.privatePackage, r.resync ?? false, readingVectors(c.impl))
    c.state = result.newState
    return { commit: encode({ wireformat: "mls_public_message", publicMessage: result.publicMessage }) }
  },
  psk: async (c, r) => {
    c.psks[Buffer.from(unhex(r.id)).toString("base64")] = unhex(r.secret)
  },
  reinit: async (c, r) => c.finish(await reinitGroup(c.state, unhex(r.group), "mls10", suiteName(r.suite), [], c.impl)),
  reinit_create: async (c, r) => {
    const old = c.state
    c.keys = await Keys.of(c.keys.name, r.suite)
    const pair = await c.keys.pair()
    const result = await reinitCreateNewGroup(old, pair.publicPackage, pair.privatePackage, r.adds.map(keyPackageOf), unhex(r.group), suiteName(r.suite), [])
    return { ...c.finish(result), tree: await treeOf(c) }
  },
  reinit_join: async (c, r) => {
    const old = c.state
    const welcome = welcomeOf(r.welcome)
    c.keys = c.next
    await c.open((pair) => joinGroupFromReinit(old, welcome, pair.publicPackage, pair.privatePackage, treeBeside(r.tree)))
  },
  branch: async (c, r) => {
    const pair = await c.keys.pair()
    const result = await branchGroup(c.state, pair.publicPackage, pair.privatePackage, r.adds.map(keyPackageOf), unhex(r.group), c.impl)
    return { ...c.finish(result), tree: await treeOf(c) }
  },
  branch_join: async (c, r) => {
    const old = c.state
    const welcome = welcomeOf(r.welcome)
    c.keys = c.next
    await c.open((pair) => joinGroupFromBranch(old, welcome, pair.publicPackage, pair.privatePackage, treeBeside(r.tree), c.impl))
  },
  load: async (c) => {
    const { clientConfig } = c.state
    const stored = encodeGroupState(c.state)
    const start = process.hrtime.bigint()
    c.state = { ...decodeGroupState(stored, 0)[0], clientConfig }
    return { ns: since(start) }
  },
  state: async (c) => {
    const members = []
    c.state.ratchetTree.forEach((node, i) => {
      if (node?.nodeType === "leaf") members.push({ leaf: i / 2, identity: hex(node.leaf.credential.identity) })
    })
    return {
      epoch: Number(c.state.groupContext.epoch),
      authenticator: hex(c.state.keySchedule.epochAuthenticator),
      exported: hex(await mlsExporter(c.state.keySchedule.exporterSecret, "interop", new TextEncoder().encode("context"), 32, c.impl)),
      leaf: c.state.privatePath.leafIndex,
      active: c.state.groupActiveState.kind === "active",
      members,
    }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer
  try {
    const request = JSON.parse(line)
    const operation = operations[request.op]
    if (!operation) throw new Error(`unknown operation ${request.op}`)
    const client = clients.get(request.client)
    if (!client && !["info", "new", "forget"].includes(request.op)) throw new Error("unknown client")
    answer = { ok: true, ...(await operation(client, request)) }
  } catch (e) {
    answer = { ok: false, error: String(e.stack ?? e) }
  }
  process.stdout.write(JSON.stringify(answer) + "\n")
}
