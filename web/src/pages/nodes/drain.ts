// What a person must know before a node is drained: it ends, who goes on without it, and whether this page ends
// with it. Pure.
import type { Question } from "../../live/confirm";
import { many } from "../../text/numbers";
import type { NodeFacts, Session } from "../../wire/types";

export function drainQuestion(node: NodeFacts, all: readonly NodeFacts[], beside: Session["beside"]): Question {
  const text = [
    `Node ${node.host} finishes what runs now (${many(node.running, "job")}), gives back the rest and ends. ` +
      "It does not start again by itself.",
  ];
  const others = all.filter((one) => one.id !== node.id && one.state === "live");
  const unserved = node.queues.filter((queue) => !others.some((one) => one.queues.includes(queue)));
  if (unserved.length) {
    const named = unserved.slice(0, 5).join(", ") + (unserved.length > 5 ? ", …" : "");
    text.push(`No other node serves ${named}: jobs there wait until one does.`);
  }
  if (beside !== null && beside.host === node.host && beside.pid === node.pid) {
    text.push("This dashboard runs beside that node and ends with it: this page will show nothing more.");
  }
  return { title: "Drain the node", text, press: "Drain the node" };
}
