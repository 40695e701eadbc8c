import "./reference.css";
import OpenApiExplorer from "openapi-explorer";
import { isSignedIn, MARK } from "../api/session";
import { readToken } from "../api/token";
import { followScheme } from "./colours";

const DOCUMENT = "/openapi.json";
interface Contract {
  info: { title: string; version: string };
}

async function readContract(): Promise<Contract> {
  const answer = await fetch(DOCUMENT);
  if (!answer.ok) throw new Error(`${DOCUMENT} answered ${answer.status}.`);
  // The package sends a header with one value unless it may choose: If-None-Match would refuse every change.
  const contract = JSON.parse(await answer.text(), (name, value) =>
    name === "schema" && value.const !== undefined ? { ...value, const: undefined, enum: [value.const] } : value,
  );
  // Requests go to the server that served the page, whatever address the document shows as an example.
  return { ...contract, servers: [{ url: location.origin }] };
}

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  values: Partial<HTMLElementTagNameMap[K]>,
  ...inside: Node[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), values);
  made.append(...inside);
  return made;
}

function overview({ info }: Contract, caller: "token" | "session" | "nobody"): HTMLElement {
  const token = {
    token: "Requests carry the token of this tab's console.",
    session: "Requests are sent as the account that is signed in to the console.",
    nobody: "Requests need a token: set one under Authentication, or sign in to the console in this tab first.",
  }[caller];
  const title = element("h1", { textContent: `${info.title} API ${info.version}` });
  return element("div", { slot: "overview" }, title, element("p", { textContent: token }));
}

function places(): HTMLElement {
  const console = element("a", { href: "/ui/", textContent: "Console" });
  const contract = element("a", { href: DOCUMENT, textContent: "openapi.json" });
  return element("p", { slot: "nav-header" }, console, contract);
}

async function show(): Promise<void> {
  // The package accepts a token from the address of a page that a sign-in leads back to; no sign-in leads here.
  if (/\bstate=/.test(location.search + location.hash)) history.replaceState(null, "", location.pathname);
  const token = readToken();
  const caller = token !== null ? "token" : (await isSignedIn()) ? "session" : "nobody";
  const contract = await readContract();
  const explorer = new OpenApiExplorer();
  explorer.setAttribute("hide-server-selection", "");
  explorer.append(places(), overview(contract, caller));
  explorer.addEventListener("request", (event) => {
    (event as CustomEvent<{ request: { headers: Headers } }>).detail.request.headers.set(MARK, "1");
  });
  followScheme(explorer);
  document.body.append(explorer);
  await explorer.loadSpec(contract);
  if (token !== null) await explorer.setAuthenticationConfiguration("bearer", { token });
}

show().catch((error: unknown) => {
  document.body.textContent = `The API reference cannot be shown: ${error instanceof Error ? error.message : error}`;
});
