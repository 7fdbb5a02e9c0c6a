// Node 18, which Debian 12 has, knows no global `crypto`; a library of a judge needs it. To be imported first.
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
