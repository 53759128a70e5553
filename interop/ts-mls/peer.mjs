// ts-mls behind one JSON request and one JSON answer a line: the same lines as
// the OpenMLS peer's, so that one driver (interop_test.go) speaks to both.
import { createInterface } from "node:readline"
import {
  acceptAll, branchGroup, createApplicationMessage, createCommit, createGroup,
  createGroupInfoWithExternalPubAndRatchetTree, createProposal, decodeMlsMessage, defaultCapabilities,
  defaultLifetime, emptyPskIndex, encodeMlsMessage, generateKeyPackage, getCiphersuiteFromName,
  getCiphersuiteImpl, joinGroup, joinGroupExternal, joinGroupFromBranch, joinGroupFromReinit, makePskIndex,
  mlsExporter, processMessage, reinitCreateNewGroup, reinitGroup, ciphersuites,
} from "ts-mls"

const unhex = (s) => new Uint8Array(Buffer.from(s, "hex"))
const hex = (b) => Buffer.from(b).toString("hex")
const suiteName = (id) => Object.keys(ciphersuites).find((name) => ciphersuites[name] === id)
const clients = new Map()

function decode(raw, wireformat) {
  const decoded = decodeMlsMessage(unhex(raw), 0)
  if (!decoded || decoded[1] !== raw.length / 2) throw new Error("not one MLSMessage")
  if (wireformat && decoded[0].wireformat !== wireformat) throw new Error(`not ${wireformat} but ${decoded[0].wireformat}`)
  return decoded[0]
}

const encode = (body) => hex(encodeMlsMessage({ version: "mls10", ...body }))
const keyPackageOf = (raw) => decode(raw, "mls_key_package").keyPackage
const welcomeOf = (raw) => decode(raw, "mls_welcome").welcome

class Client {
  constructor(name, impl) {
    this.name = name
    this.impl = impl
    this.psks = {}
    this.packages = new Map() // public package in hex → both halves
  }

  async keyPackage() {
    const credential = { credentialType: "basic", identity: new TextEncoder().encode(this.name) }
    const pair = await generateKeyPackage(credential, defaultCapabilities(), defaultLifetime, [], this.impl)
    const raw = encode({ wireformat: "mls_key_package", keyPackage: pair.publicPackage })
    this.packages.set(raw, pair)
    this.pair = pair
    return raw
  }

  pskIndex() {
    return makePskIndex(this.state, this.psks)
  }

  /** Tries each package of this client until one opens the Welcome. */
  async open(join) {
    let failure = new Error("no key package was made")
    for (const pair of this.packages.values()) {
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

const nonce = (impl) => impl.rng.randomBytes(impl.kdf.size)

const operations = {
  info: async () => ({ peer: "ts-mls 1.6.4", suites: [1, 2, 3, 4, 5, 6, 7], can: ["external_join", "psk", "propose", "reinit", "branch"] }),
  new: async (_, r) => {
    clients.set(r.client, new Client(r.client, await getCiphersuiteImpl(getCiphersuiteFromName(suiteName(r.suite)))))
  },
  forget: async () => clients.clear(),
  key_package: async (c) => ({ key_package: await c.keyPackage() }),
  create: async (c, r) => {
    await c.keyPackage()
    c.state = await createGroup(unhex(r.group), c.pair.publicPackage, c.pair.privatePackage, [], c.impl)
  },
  commit: async (c, r) => {
    const extraProposals = [
      ...(r.adds ?? []).map((raw) => ({ proposalType: "add", add: { keyPackage: keyPackageOf(raw) } })),
      ...(r.removes ?? []).map((leaf) => ({ proposalType: "remove", remove: { removed: leaf } })),
      ...(r.psks ?? []).map((id) => ({ proposalType: "psk", psk: { preSharedKeyId: { psktype: "external", pskId: unhex(id), pskNonce: nonce(c.impl) } } })),
    ]
    const context = { state: c.state, cipherSuite: c.impl, pskIndex: c.pskIndex() }
    return c.finish(await createCommit(context, { extraProposals, wireAsPublicMessage: true, ratchetTreeExtension: true }))
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
  group_info: async (c) => {
    const groupInfo = await createGroupInfoWithExternalPubAndRatchetTree(c.state, [], c.impl)
    return { group_info: encode({ wireformat: "mls_group_info", groupInfo }) }
  },
  external_join: async (c, r) => {
    await c.keyPackage()
    const { groupInfo } = decode(r.group_info, "mls_group_info")
    const result = await joinGroupExternal(groupInfo, c.pair.publicPackage, c.pair.privatePackage, false, c.impl)
    c.state = result.newState
    return { commit: encode({ wireformat: "mls_public_message", publicMessage: result.publicMessage }) }
  },
  psk: async (c, r) => {
    c.psks[Buffer.from(unhex(r.id)).toString("base64")] = unhex(r.secret)
  },
  reinit: async (c, r) => c.finish(await reinitGroup(c.state, unhex(r.group), "mls10", suiteName(r.suite), [], c.impl)),
  reinit_create: async (c, r) => {
    c.old = c.state
    return c.finish(await reinitCreateNewGroup(c.state, c.pair.publicPackage, c.pair.privatePackage, r.adds.map(keyPackageOf), unhex(r.group), suiteName(r.suite), []))
  },
  reinit_join: async (c, r) => {
    const old = c.state
    const welcome = welcomeOf(r.welcome)
    await c.open((pair) => joinGroupFromReinit(old, welcome, pair.publicPackage, pair.privatePackage, undefined))
  },
  branch: async (c, r) => c.finish(await branchGroup(c.state, c.pair.publicPackage, c.pair.privatePackage, r.adds.map(keyPackageOf), unhex(r.group), c.impl)),
  branch_join: async (c, r) => {
    const old = c.state
    const welcome = welcomeOf(r.welcome)
    await c.open((pair) => joinGroupFromBranch(old, welcome, pair.publicPackage, pair.privatePackage, undefined, c.impl))
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
