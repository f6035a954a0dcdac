// Where the page starts.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/all.css";
import { followAddress } from "./live/route";
import "./live/theme";
import { App } from "./shell/app";
import { listenToKeys } from "./shell/keys";

followAddress();
listenToKeys();
render(<App />, document.getElementById("app")!);
