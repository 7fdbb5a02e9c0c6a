// The OpenAPI document on standard input, judged by the official schema of OpenAPI 3.1.
import { readFileSync } from "node:fs";
import { validate, compileErrors } from "@readme/openapi-parser";

const document = JSON.parse(readFileSync(0, "utf8"));
const result = await validate(document);
if (!result.valid) {
  console.log(compileErrors(result));
  process.exit(1);
}
console.log(`valid, ${result.warnings.length} warnings`);
