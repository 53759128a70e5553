// Makes every golden value again with Node's crypto alone, from the written
// description of the byte layouts. Run: node independent.mjs
// TestIndependent compares the output with what the Go code makes.
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";

const sha512 = (...parts) => createHash("sha512").update(Buffer.concat(parts)).digest();
const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
const utf8 = (s) => Buffer.from(s, "utf8");
const u16 = (n) => { const b = Buffer.alloc(2); b.writeUInt16BE(n); return b; };
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b; };
const u64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64BE(BigInt(n)); return b; };

function key(name) {
  const seed = sha512(utf8("identity test key " + name)).subarray(0, 32);
  const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  const priv = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
  const pub = createPublicKey(priv).export({ type: "spki", format: "der" }).subarray(-32);
  return { pub, sign: (m) => sign(null, m, priv) };
}

const ada = key("ada"), phone = key("ada's phone"), bob = key("bob");
const home = Buffer.from("0a0b0c", "hex");
const out = {};

// Attestation and credential.
const deviceId = sha256(utf8("compax-device-v1"), ada.pub, phone.pub).subarray(0, 16);
const hpke = Buffer.alloc(32); hpke.set([1, 2, 3]);
const attestation = Buffer.concat([
  utf8("compax-attestation-v1"), ada.pub, deviceId, phone.pub, hpke, home, Buffer.from([0]), u64(7), u64(1764000000),
]);
out["credential"] = Buffer.concat([attestation, ada.sign(attestation), phone.sign(attestation)]).toString("hex");

// Revocation.
const revocation = Buffer.concat([utf8("compax-revocation-v1"), ada.pub, deviceId, u64(1764000001)]);
out["revocation"] = Buffer.concat([revocation, ada.sign(revocation)]).toString("hex");

// Login.
out["login"] = phone.sign(Buffer.concat([utf8("compax-login-v1"), home, Buffer.alloc(32, 7)])).toString("hex");

// Envelope.
const nonce = Buffer.from([0, 1, 2, 3, 250, 251, 252, 253, 254, 255, 6, 7, 8, 9, 10, 11]);
function envelope(method, path, body) {
  const signature = phone.sign(Buffer.concat([
    utf8("chat-relay-envelope-v1"), phone.pub, home,
    u32(Buffer.byteLength(method)), utf8(method),
    u32(Buffer.byteLength(path)), utf8(path),
    u32(body.length), body,
    u64(1764000000), nonce,
  ]));
  return Buffer.from(JSON.stringify({
    device_pubkey: [...phone.pub],
    home: home.toString("hex"),
    method,
    path,
    issued_at: 1764000000,
    nonce: [...nonce],
    signature: signature.toString("hex"),
  })).toString("base64url");
}
out["envelope-post"] = envelope("POST", '/bot9f2c/sendMessage?text="a\\b"&x=1', utf8('{"chat_id":-1001,"text":"Hello."}'));
out["envelope-get"] = envelope("GET", "/info", Buffer.alloc(0));

// Username record.
const picture = Buffer.alloc(32); picture[0] = 5;
const field = (s) => Buffer.concat([u16(Buffer.byteLength(s)), utf8(s)]);
const username = Buffer.concat([
  utf8("compax-username-v1"), ada.pub, u64(3), u64(1764000000),
  field("ada"), field("Ada Łovelace"), field("First line\nsecond"), picture,
]);
out["username-record"] = Buffer.concat([username, ada.sign(username)]).toString("hex");

// Safety numbers and their codes.
function iterate(b) {
  const first = sha512(b);
  let h = first;
  for (let i = 0; i < 5200; i++) h = sha512(h, first);
  return h;
}
function digits(b) {
  let s = "";
  for (let i = 0; i + 5 <= b.length; i += 5) s += String(b.readUIntBE(i, 5) % 100000).padStart(5, "0");
  return s;
}
const grouped = (s) => s.match(/.{5}/g).join(" ");
const person = (k) => digits(iterate(Buffer.concat([utf8("compax-safety-v1"), k.pub])).subarray(0, 30));
out["safety-pair"] = grouped([person(ada), person(bob)].sort().join(""));
const room = Buffer.alloc(16); room.set([1, 2, 3]);
const roster = [ada.pub, bob.pub].sort(Buffer.compare);
const digest = iterate(Buffer.concat([utf8("compax-room-safety-v1"), room, u32(2), ...roster]));
out["safety-room"] = grouped(digits(digest.subarray(0, 60)));
out["qr-pair"] = "compax-verify:1:" + Buffer.concat([ada.pub, bob.pub]).toString("base64url");
out["qr-room"] = "compax-verify-room:1:" + Buffer.concat([room, digest]).toString("base64url");

console.log(JSON.stringify(out, null, 1));
