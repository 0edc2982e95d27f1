//! Writes the outcomes as JSON: the adapter, and a list of records.
use super::Report;

pub fn text(report: &Report) -> String {
    serde_json::to_string_pretty(report).expect("a report is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_record_says_its_outcome_and_why() {
        let text = super::text(&super::super::tests::sample());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let records = value["records"].as_array().unwrap();
        let outcomes: Vec<_> = records.iter().map(|r| r["outcome"].as_str().unwrap()).collect();
        assert_eq!(outcomes, ["passed", "skipped", "failed", "skipped"]);
        assert_eq!(records[1]["why"], "no \"device\"");
        assert_eq!(records[3]["known"], "y");
    }
}
