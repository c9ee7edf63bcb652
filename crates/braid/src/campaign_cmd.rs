//! `braid lab campaign`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use braid_lab::campaign::{self, Campaign, Done, Job, Pool};
use braid_lab::report::files::to_json;
use braid_lab::report::table::{Style, render};
use braid_netns::error::LabError;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CampaignArgs {
    /// The campaign's file.
    file: PathBuf,
    /// Folder of the campaign; start it again with the same one to go on (default: out/NAME).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Jobs at a time (default: one for each core; 1 on the real clock).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// List the jobs, and run none.
    #[arg(long, conflicts_with_all = ["job", "collect"])]
    list: bool,
    /// Run only job N of the list, from 1, and collect nothing.
    #[arg(long, value_name = "N", conflicts_with = "collect")]
    job: Option<usize>,
    /// Run none, and collect what has run.
    #[arg(long)]
    collect: bool,
    /// Print summary.json, and nothing else, on standard output; with --list, a JSON list.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CampaignArgs) -> Result<ExitCode> {
    let braid =
        std::env::current_exe().context("find the braid program, which each job is run by")?;
    let campaign = Campaign::load(&args.file)?.run_by(&braid)?;
    if args.list {
        list(&campaign, args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let pool = Pool {
        dir: match &args.out {
            Some(dir) => dir.clone(),
            None => PathBuf::from("out").join(&campaign.name),
        },
        braid,
        workers: args.workers.map(usize::from),
    };
    if let Some(n) = args.job {
        return one(&campaign, n, &pool);
    }
    let died = if args.collect {
        0
    } else {
        campaign::run_all(&campaign, &pool, args.json)?
    };
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let collected = campaign::collect(&campaign, &pool.dir, &command)?;
    if args.json {
        braid_api::say!("{}", to_json(&collected.summary));
    } else {
        braid_api::output::say(format_args!(
            "{}",
            render(&collected.summary, Style::detect())
        ));
        braid_api::say!("\nreport: {}", collected.report.display());
    }
    if collected.missing > 0 {
        braid_api::note!(
            "note: {} of {} jobs have not run; the same command without --collect runs them",
            collected.missing,
            campaign.jobs.len()
        );
    }
    let failed = collected.summary.cases.iter().any(|c| c.failed.is_some());
    Ok(if failed || died > 0 {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn one(campaign: &Campaign, n: usize, pool: &Pool) -> Result<ExitCode> {
    let job = n
        .checked_sub(1)
        .and_then(|i| campaign.jobs.get(i))
        .ok_or_else(|| {
            LabError::BadInput(format!(
                "there is no job {n}: the campaign has 1 to {}",
                campaign.jobs.len()
            ))
        })?;
    let done = campaign::run_one(campaign, job, pool)?;
    let what = match done {
        Done::Ran => "done",
        Done::Before => "was done before",
        Done::Failed => "a case of it failed",
    };
    braid_api::note!("job {n}: {}, repeat {}: {what}", job.label(), job.repeat);
    Ok(if done == Done::Failed {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn list(campaign: &Campaign, json: bool) {
    if json {
        let jobs: Vec<_> = campaign.jobs.iter().enumerate().map(entry).collect();
        braid_api::say!("{:#}", serde_json::Value::from(jobs));
        return;
    }
    for (i, job) in campaign.jobs.iter().enumerate() {
        braid_api::say!(
            "{:>6}  {}  {}, repeat {}, seed {}",
            i + 1,
            job.key,
            job.label(),
            job.repeat,
            job.seed()
        );
    }
}

fn entry((i, job): (usize, &Job)) -> serde_json::Value {
    let axes: serde_json::Map<_, _> = job
        .labels
        .iter()
        .map(|(k, v)| (k.clone(), v.clone().into()))
        .collect();
    serde_json::json!({
        "job": i + 1,
        "key": job.key,
        "axes": axes,
        "repeat": job.repeat,
        "seed": job.seed(),
    })
}
