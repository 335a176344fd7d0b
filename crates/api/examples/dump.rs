fn main() {
    for c in api::crds() {
        println!("{}", serde_json::to_string(&c).unwrap());
    }
}
